# PNG at the size that was asked for, PDF of one page.
roofline list surfaces --format csv | grep -q '^png,ok\|,png,ok' || { echo "no cairo" >&2; exit 77; }
roofline plot --points "$RFL_TEST_DATA"/plot/points.csv --peaks "$RFL_TEST_DATA"/plot/peaks.json \
	--env lab_cpu --format png,pdf --width 500 --height 350 --dpi 288 --title 'A title'
od -A n -t u1 -j 16 -N 8 figures/roofline_lab_cpu.png
grep -a -c '/Type /Page ' figures/roofline_lab_cpu.pdf

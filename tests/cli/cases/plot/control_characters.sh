# Whatever the points and the title hold, an SVG is well-formed: no control characters, no U+FFFE,
# no bytes that are not UTF-8.
bad=$(printf 'x\001y\033\302\2331m\357\277\276\355\240\200\377')
sed "2,\$s/resnet50/resnet50$bad/; 2,\$s/nchw/nchw$bad/; 2,\$s/torch/torch$bad/" "$RFL_TEST_DATA"/plot/points.csv >points.csv
sed "s/avx512 fma/avx512$(printf '\302\233\357\277\277')/" "$RFL_TEST_DATA"/plot/peaks.json >peaks.json
for format in svg $(roofline list surfaces --format csv | sed -n 's/^surfaces,pdf,ok.*/pdf/p'); do
	roofline plot --points points.csv --peaks peaks.json --title "A title $bad" --format "$format" >out || exit
done
for f in figures/*.svg; do
	iconv -f UTF-8 -t UTF-8 "$f" >/dev/null
	LC_ALL=C tr -cd '\001-\010\013-\037\177' <"$f" | od -An -tx1
	LC_ALL=C grep -c "$(printf '\302\233')\|$(printf '\357\277')" "$f"
	grep -o '<title>A title.*</title>' "$f"
done

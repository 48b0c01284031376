# The two numbers of a line have the ratio beside them: sqrt(1 x 16) = 4 and sqrt(2 x 8) = 4.
for side in "1 16" "2 8"; do
	echo label,throughput
	for rate in $side; do
		echo "lab_resnet18_fp32_bs8_r$rate,$rate"
	done
done >both.csv
head -3 both.csv >a.csv
tail -3 both.csv >b.csv
roofline -q compare a.csv b.csv --format csv | cut -d, -f1-3,16-22

# what is shown unless columns are chosen fits a terminal of 160 columns; notes are lines that wrap
echo '{"lab": {"peak_gflops": 1500, "peak_gbps": 60}}' > peaks.json
for by in model module layer kind; do
	for more in "" "--train" "--train --peaks peaks.json --env lab" "--train --fusion unfused"; do
		roofline complexity -m resnet50 -b 16 --by $by $more | sed -n '3,/^$/p' |
			awk -v what="--by $by $more" 'length > 160 { print what ": " length; exit }'
	done
done
roofline complexity -m all --train | sed -n '3,/^$/p' | awk 'length > 160 { print "all: " length; exit }'
roofline complexity -m resnet50 vgg16 -b 16 32 --train --by kind | sed -n '3,/^$/p' |
	awk 'length > 160 { print "two: " length; exit }'
roofline complexity -m gpt2 resnet50 --train --fit "NVIDIA L4" | sed -n '3,/^$/p' |
	awk 'length > 160 { print "fit: " length; exit }'
echo done

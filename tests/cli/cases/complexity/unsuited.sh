roofline -q complexity -m resnet18 --write-net . > /dev/null
for options in "-m resnet18 --aux" "-m resnet18 --causal half" "-m resnet18 --attention naive" \
	"-m tiny_lm --input-grad" "--net resnet18.json --image-size 64" "--net resnet18.json --classes 10" \
	"--net resnet18.json --context-length 10"; do
	roofline complexity $options
	echo "$options: $?"
done
# where one of several networks suits, the others are as they are
for options in "-m resnet18 inception_v3 --aux" "-m resnet18 tiny_lm --causal half --attention naive" \
	"-m resnet18 tiny_lm --input-grad" "-m resnet18 --net resnet18.json --classes 10"; do
	roofline complexity $options --columns model training_flops --format csv > /dev/null
	echo "$options: $?"
done

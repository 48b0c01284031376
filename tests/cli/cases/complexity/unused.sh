# Options that have no effect on what is asked for are accepted; those that contradict it are not.
for options in "--as fvcore --train" "--as fvcore -b 8" "--fit 8GiB --top 3" "--fit 8GiB --optimizer adamw" \
	"--optimizer adamw" "--by kind --freeze conv1" "--depth 2" "--summary --by kind" "--format json --top 3"; do
	roofline complexity -m resnet18 $options >out
	echo "$options: $?"
done
for options in "--fit 8GiB -b 2" "--fit 8GiB -b 2 3" "-m tiny_lm --fit 1GiB -b 2 3" "--summary -b 1 8" "--summary --format csv"; do
	roofline complexity -m resnet18 $options
	echo "$options: $?"
done

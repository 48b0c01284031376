# What cannot run as it was asked for is wrong usage: exit code 2, and no row.
mkdir -p empty/train/cat
for words in "--arch resnet5 --synthetic" "--arch resnet18 --synthetic --label ../x" \
	"--arch resnet18 --synthetic --env Lab" "--arch resnet18 --data empty"; do
	roofline run $words 2>/dev/null
	echo "$words: $?"
done
ls

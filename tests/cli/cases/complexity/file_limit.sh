# A limit on the size of files is a failure like a full disk: it is said, and nothing half is left.
(
	ulimit -f 1
	roofline complexity --models resnet18 --output-dir out >/dev/null
	echo "exit $?"
)
ls -A out

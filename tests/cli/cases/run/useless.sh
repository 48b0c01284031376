# An option that would change nothing is wrong usage: exit code 2, and no row.
for words in "--pin-memory --backend cpu" "--cuda-graph --backend cpu" "--cudnn-benchmark --backend mps" \
	"--sync-each-step --backend cpu" "--workers 2" "--optimizer adam --momentum 0.9" "--mode fwd --lr 0.1" \
	"--until-max 5" "--until 5" "--cuda-graph --grad-accum-steps 2"; do
	roofline run --arch resnet18 --synthetic $words 2>&1
	echo "exit $?"
done
ls

roofline list engines --format csv | grep -q '^engines,torch[^,]*,ok,' || { echo "no engine" >&2; exit 77; }
roofline run -q --arch resnet18 --image-size 32 --batch-size 2 --warmup-iters 1 --iters 12 --backend cpu \
	--synthetic --threads 1 --env lab --log-dir L
roofline run -q --arch resnet18 --image-size 32 --batch-size 2 --warmup-iters 1 --iters 12 --backend cpu \
	--synthetic --threads 1 --env lab --log-dir L --mode fwd
ls L L/time
wc -l <L/metrics.csv
cat L/steps/*.csv | grep -c '^[0-9]'

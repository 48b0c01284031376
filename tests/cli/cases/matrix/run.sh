# Run, failed, resumed, retried; the status and the exit codes on the way.
ROOFLINE_PLUGIN_PATH=$(dirname "$ROOFLINE")/../tests/engines
[ -f "$ROOFLINE_PLUGIN_PATH/engine_fake-1.0-test.so" ] || { echo "no fake engine" >&2; exit 77; }
export ROOFLINE_PLUGIN_PATH ROOFLINE_LOCK_DIR=$PWD
m=small.json
cp "$(dirname "$0")/$m" .

run() {
	echo "-- run $*"
	roofline matrix run "$m" "$@" >out 2>err
	echo "exit $?"
	sed -e 's/: ok, .*/: ok/' -e 's/  *$//' out
	sed 's/, about [0-9]* s left//' err
}

status() {
	echo "-- status $*"
	roofline matrix status "$m" "$@" 2>err
	echo "exit $?"
	cat err
}

status
run --only lab/resnet18/fp32/2
RFL_FAKE=edevmem:backward:0 run --only lab
status --only lab
run --only lab
run --only lab/resnet18 --retry-failed
roofline run -q --engine fake --arch resnet18 --image-size 64 --batch-size 4 --warmup-iters 1 --iters 5 --synthetic \
	--backend cpu --threads 1 --env lab --label lab_resnet18_fp32_bs4_run1 >/dev/null
status --only lab | sed 's/[0-9]*T[0-9]*-[0-9a-f]*/RUN_ID/'
RFL_FAKE=unavailable run --only gpu/resnet18/fp32/4
run --only lab --retry-failed
status --only lab --format csv
status --format json | grep -c '"cell"'
status --only lab --format md | sed 's/[0-9]*T[0-9]*-[0-9a-f]*/RUN_ID/'
wc -l <logs/metrics.csv
sed -i.bak 's/"iters": 5/"iters": 6/' "$m" # other options: other cells
status --only lab | tail -n 2

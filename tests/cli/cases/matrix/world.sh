# Several processes: a row of each rank and one of all, which alone is the run.
ROOFLINE_PLUGIN_PATH=$(dirname "$ROOFLINE")/../tests/engines
[ -f "$ROOFLINE_PLUGIN_PATH/engine_fake-1.0-test.so" ] || { echo "no fake engine" >&2; exit 77; }
export ROOFLINE_PLUGIN_PATH ROOFLINE_LOCK_DIR=$PWD
sed 's/"threads": 1/"threads": 1, "world": 2/' "$(dirname "$0")/small.json" >m.json
unset CUDA_VISIBLE_DEVICES
for run in 1 2; do
	mkdir meet$run
	RFL_FAKE_WORLD=$PWD/meet$run roofline matrix run -q m.json --only lab_resnet18_fp32_bs4_run$run | sed 's/: ok, .*/: ok/'
done
cut -d , -f 7,9 logs/metrics.csv | tail -n +2 | sort
roofline matrix status m.json --only lab/resnet18/fp32/4
echo "exit $?"
roofline matrix run m.json --only lab/resnet18/fp32/4 # nothing is left
roofline summary --matrix m.json 2>/dev/null | grep '^m\.json\|^small\|of 14'
roofline -q summary --matrix m.json 2>&1 >summary | grep -o "'roofline matrix run .*"
# of ranks alone nothing is done: rank 0 died before it wrote the row of all
grep -v 'bs4_run2,' logs/metrics.csv >ranks && mv ranks logs/metrics.csv
roofline matrix status m.json --only lab/resnet18/fp32/4
echo "exit $?"

# Log folders of tasks into one, more than once; what was run twice is told.
ROOFLINE_PLUGIN_PATH=$(dirname "$ROOFLINE")/../tests/engines
[ -f "$ROOFLINE_PLUGIN_PATH/engine_fake-1.0-test.so" ] || { echo "no fake engine" >&2; exit 77; }
export ROOFLINE_PLUGIN_PATH ROOFLINE_LOCK_DIR=$PWD
m=small.json
cp "$(dirname "$0")/$m" .
mkdir -p logs/tasks/3
roofline matrix run -q "$m" --only lab --shard 0/2 --log-dir logs/tasks/0 >/dev/null
roofline matrix merge "$m"
roofline matrix run -q "$m" --only lab --shard 1/2 --log-dir logs/tasks/10 >/dev/null
roofline matrix run -q "$m" --only lab/alexnet --log-dir other >/dev/null
echo '{}' >logs/tasks/10/env.json
roofline matrix merge "$m"
roofline matrix merge "$m" other
roofline matrix merge "$m" other logs/tasks/0
roofline matrix status "$m" --only lab | sed 's/[0-9]*T[0-9]*-[0-9a-f]*/RUN_ID/'
ls logs logs/env
cut -d, -f2 logs/metrics.csv | sort | uniq -d
ls logs/steps | wc -l

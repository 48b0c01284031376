# A signal ends the run that is on, with its row, and the matrix; the same command goes on.
ROOFLINE_PLUGIN_PATH=$(dirname "$ROOFLINE")/../tests/engines
[ -f "$ROOFLINE_PLUGIN_PATH/engine_fake-1.0-test.so" ] || { echo "no fake engine" >&2; exit 77; }
export ROOFLINE_PLUGIN_PATH ROOFLINE_LOCK_DIR=$PWD
m=small.json
cp "$(dirname "$0")/$m" .

once() { # SIGNAL
	RFL_FAKE=hang:forward:3 RFL_FAKE_PID=$PWD/begun roofline matrix run "$m" --only lab/alexnet >out 2>err &
	pid=$!
	while [ ! -s begun ] && kill -0 $pid 2>/dev/null; do sleep 0.05; done
	kill -"$1" $pid
	wait $pid
	echo "exit $?"
	sed -e 's/: ok, .*/: ok/' out
	cat err
	rm -f begun
}
once TERM
once HUP
roofline matrix status "$m" --only lab/alexnet --format csv | sed 's/^[^,]*,//'
roofline matrix run -q "$m" --only lab/alexnet | sed 's/: ok, .*/: ok/'
roofline matrix status "$m" --only lab/alexnet --format csv | sed 's/^[^,]*,//'

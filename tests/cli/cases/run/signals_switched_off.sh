# A signal that the caller ignores (nohup) does not end a run; one that is not ignored does.
ROOFLINE_PLUGIN_PATH=$(dirname "$ROOFLINE")/../tests/engines
[ -f "$ROOFLINE_PLUGIN_PATH/engine_fake-1.0-test.so" ] || { echo "no fake engine" >&2; exit 77; }
export ROOFLINE_PLUGIN_PATH RFL_FAKE_MS=20,1,1
once() {
	roofline run -q --engine fake --arch resnet18 --image-size 32 --batch-size 2 --warmup-iters 0 --iters 30 \
		--backend cpu --threads 1 --synthetic --label "$1" --log-dir L >line 2>/dev/null &
	pid=$!
	while [ ! -s begun ]; do sleep 0.05; done
	kill -HUP $pid
	wait $pid
	echo "exit $?: $(sed "s/,.*//; s/interrupted:.*/interrupted/" line)"
	rm -f begun
}
RFL_FAKE_PID=$PWD/begun
export RFL_FAKE_PID
(trap '' HUP; once ignored)
once heard

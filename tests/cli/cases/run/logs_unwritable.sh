# What keeps a row or its files from being written is found before the training, not after it.
ROOFLINE_PLUGIN_PATH=$(dirname "$ROOFLINE")/../tests/engines
[ -f "$ROOFLINE_PLUGIN_PATH/engine_fake-1.0-test.so" ] || { echo "no fake engine" >&2; exit 77; }
RFL_FAKE_PID=$PWD/begun
export ROOFLINE_PLUGIN_PATH RFL_FAKE_PID
once() {
	timeout 20 roofline run -q --engine fake --arch resnet18 --image-size 32 --batch-size 2 --warmup-iters 0 --iters 2 \
		--backend cpu --threads 1 --synthetic --label a --log-dir L "$@" >line
	echo "exit $?: $(cut -d, -f1 line)"
	[ ! -e begun ] || echo "it began"
	rm -rf begun L
}
for name in metrics.csv metrics.jsonl env.json; do
	mkdir L
	mkfifo L/$name
	once
done
mkdir L
: >L/steps
once
once --arch vit_h_14 --image-size 14336 --batch-size 1048576
mkdir L
echo >L/metrics.csv # an editor saved nothing
once

# A row that the ledger has no room for is printed, and the ledger is named, whatever else failed.
ROOFLINE_PLUGIN_PATH=$(dirname "$ROOFLINE")/../tests/engines
[ -f "$ROOFLINE_PLUGIN_PATH/engine_fake-1.0-test.so" ] || { echo "no fake engine" >&2; exit 77; }
export ROOFLINE_PLUGIN_PATH
(
	ulimit -f 1
	roofline run -q --engine fake --arch resnet18 --image-size 32 --batch-size 2 --warmup-iters 0 --iters 2 \
		--backend cpu --threads 1 --synthetic --label a --log-dir L
	echo "exit $?" >&2
) | cut -d, -f7,9
# the row of all processes is the one that counts
mkdir meet
(
	ulimit -f 1
	RFL_FAKE_WORLD=$PWD/meet roofline run -q --engine fake --arch resnet18 --image-size 32 --batch-size 2 --warmup-iters 0 --iters 2 \
		--backend cpu --threads 1 --synthetic --world 2 --env lab --log-dir W 2>/dev/null
) | cut -d, -f7,9 | sort -u
# of the run that was recorded, though its table of steps was not
RFL_FAKE_PID=$PWD/begun
export RFL_FAKE_PID RFL_FAKE_MS=30,1,1
roofline run -q --engine fake --arch resnet18 --image-size 32 --batch-size 2 --warmup-iters 0 --iters 20 \
	--backend cpu --threads 1 --synthetic --label b --log-dir M >line &
while [ ! -s begun ]; do sleep 0.05; done
: >M/steps
wait $!
echo "exit $?: $(cut -d, -f1 line)"
cut -d, -f7,9,11 M/metrics.csv

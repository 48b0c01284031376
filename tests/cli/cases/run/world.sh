# Two processes with the engine that computes nothing: by --world N and by a launcher's variables.
ROOFLINE_PLUGIN_PATH=$(dirname "$ROOFLINE")/../tests/engines
[ -f "$ROOFLINE_PLUGIN_PATH/engine_fake-1.0-test.so" ] || { echo "no fake engine" >&2; exit 77; }
export ROOFLINE_PLUGIN_PATH RFL_FAKE_MS=2,2,2
unset CUDA_VISIBLE_DEVICES
mkdir meet1 meet2 meet3
set -- --engine fake --arch resnet18 --image-size 32 --batch-size 2 --synthetic --iters 5 --warmup-iters 1 \
	--backend cpu --threads 1 --env lab --log-dir L

echo '--- two of our own, and one alone'
RFL_FAKE_WORLD=$PWD/meet1 RFL_FAKE_JOINED=$PWD/joined roofline run -q "$@" --world 2 --bucket-mb 1 >out || cat out
sed 's/ at .* hosted/ hosted/' joined | sort
roofline run -q "$@" >out || cat out

echo '--- two that a launcher started'
for rank in 0 1; do
	RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 RFL_FAKE_WORLD=$PWD/meet2 \
		roofline run -q "$@" --world env >out$rank &
done
wait
cut -d, -f1 out0 | cut -d: -f1
cut -d, -f1 out1 | cut -d: -f1

echo '--- rows'
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
	{ print $at["label"], $at["status"], "batch", $at["batch"], "rank", "\"" $at["rank"] "\"", "of", $at["world_size"],
	  $at["launcher"], $at["interconnect"] }' L/metrics.csv | sort

echo '--- one dies'
RFL_FAKE_WORLD=$PWD/meet3 RFL_FAKE=kill:step:3 RFL_FAKE_RANK=1 roofline run -q "$@" --world 2 --world-timeout 5 --label x >out 2>err
echo "exit $?"
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
	$at["label"] ~ /^x/ { print $at["label"], $at["status"] == "ok" ? "ok" : "not ok" }' L/metrics.csv | sort

echo '--- refused'
refused() { roofline run --arch resnet18 --synthetic "$@" 2>&1; }
refused --world env
refused --world 0
refused --world two
refused --world 2 --cuda-graph
refused --world 2 --until stdrel=1%
refused --world 2 --counters step
refused --world 2 --oom shrink
refused --world 2 --in-process
refused --world 2 --backend mps
refused --world 2 --backend cpu --interconnect nccl
refused --bucket-mb 5
RANK=1 refused --world env
exit 0

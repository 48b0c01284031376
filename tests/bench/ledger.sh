#!/usr/bin/env bash
# A ledger of ROWS (100000) runs: what `roofline summary`, `compare` and `points` take for it, as whole processes; medians
# of ROUNDS (5), in turns with wc, which only reads the bytes, and with pandas where it is installed.
# Then what a run costs that adds a row to it, against one in a directory of its own; the first of them makes the
# mirror, and is not counted.
# The ledger has every column of this version, and a value wherever a run on a GPU has one.
# Usage: [PYTHON=python3] [ROWS=100000] tests/bench/ledger.sh [BUILD_DIR]
set -euo pipefail
cd "$(dirname "$0")/../.."
roofline=$(realpath "${1:-build/release}")/bin/roofline
rounds=${ROUNDS:-5}
rows=${ROWS:-100000}
python=${PYTHON:-python3}

[ -x "$roofline" ] || { echo "ledger.sh: no $roofline; build first" >&2; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# 10 environments x 10 models x 5 precisions x 8 batches: 4000 configurations, repeated in turns.
awk -v rows="$rows" '
  BEGIN {
    split("env0 env1 env2 env3 env4 env5 env6 env7 env8 env9", envs, " ")
    split("resnet18 resnet50 vgg16 mobilenet_v2 alexnet regnet_x_400mf resnet101 vgg11 resnet34 vgg19", models, " ")
    split("fp32 tf32 amp bf16 fp16", precisions, " ")
    split("1 2 4 8 16 32 64 128", batches, " ")
    srand(1)
  }
  /^<!-- columns -->/ { inside = 1; next }
  inside && n && !/^\|/ { inside = 0 }
  inside && /^\| `/ { split($0, cell, "`"); name[++n] = cell[2] }
  END {
    for (i = 1; i <= n; i++) printf "%s%s", name[i], i < n ? "," : "\n"
    for (r = 0; r < rows; r++) {
      c = r % 4000; repeat = int(r / 4000) + 1
      env = envs[c % 10 + 1]; model = models[int(c / 10) % 10 + 1]
      precision = precisions[int(c / 100) % 5 + 1]; batch = batches[int(c / 500) + 1]
      step = 20 + c % 97 + rand()
      value["schema_version"] = 3; value["run_id"] = sprintf("20261121T%06dZ-%08x", r, r * 7919)
      value["cell"] = value["config_hash"] = sprintf("%08x%08x", c * 7919, c)
      value["repeat"] = repeat; value["timestamp_utc"] = sprintf("2026-11-21T%02d:%02d:%02dZ", r / 3600 % 24, r / 60 % 60, r % 60)
      value["label"] = env "_" model "_" precision "_bs" batch "_run" repeat
      value["env"] = env; value["status"] = "ok"; value["model"] = model; value["precision"] = precision
      value["batch"] = value["micro_batch"] = value["requested_batch"] = batch; value["accum"] = 1
      value["engine"] = "torch"; value["engine_id"] = "torch-2.11-cu130"; value["engine_version"] = "2.11.0+cu130"
      value["backend"] = "cuda"; value["device_name"] = "NVIDIA GeForce RTX 4090"; value["layout"] = "nhwc"
      value["mode"] = "train"; value["optimizer"] = "sgd"; value["optimizer_kernels"] = "fused"; value["data_mode"] = "synthetic"
      value["host"] = "node" c % 10; value["kernel"] = "6.1.0-18-amd64"; value["version"] = "0.1.0"
      value["cuda_driver"] = value["cuda_runtime"] = "13.0"; value["cudnn_version"] = "9.19.0"; value["pci_bus_id"] = "0000:01:00.0"
      value["img_size"] = 224; value["classes"] = 1000; value["context_length"] = value["vocab"] = value["world_size"] = value["model_flops_per_step"] = ""
      value["samples_per_s"] = batch * 1000 / step; value["step_ms_median"] = step
      for (i = 1; i <= n; i++) {
        if (!(name[i] in value)) {
          if (name[i] ~ /text|status|attention|throttle|reason|autocast|rank|launcher|interconnect|flags|counter|selftest|counted|idle|ipc|cache|effective/) value[name[i]] = ""
          else if (name[i] ~ /_ms|_s$|_w$|_hz|_j|per_|tflops|drift|lag1|loss|gap|stdrel|lr|momentum|weight/) real[name[i]] = 1
          else value[name[i]] = i
        }
        printf "%s%s", name[i] in real ? sprintf("%.15g", step * i / 7) : value[name[i]], i < n ? "," : "\n"
      }
    }
  }' docs/reference/formats.md > "$work/metrics.csv"
printf '%s rows, %s columns, %s MB\n' "$rows" "$(head -1 "$work/metrics.csv" | tr ',' '\n' | wc -l)" \
  "$(($(stat -c %s "$work/metrics.csv") / 1000000))"

awk 'BEGIN { printf "{"; for (i = 0; i < 10; i++) printf "%s\"env%d\": {\"peak_gflops\": 1e5, \"peak_gbps\": 1e3}", i ? ", " : "", i; print "}" }' >"$work/peaks.json"

median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# seconds COMMAND...: wall, CPU time and peak MiB of a whole process
seconds() { /usr/bin/env time -f '%e %U %S %M' "$@" 2>&1 >/dev/null | tail -1 | awk '{ print $1, $2 + $3, $4 / 1024 }'; }

sides="summary csv compare points wc"
engines=$(dirname "$roofline")/../tests/engines
run() {
  ROOFLINE_PLUGIN_PATH=$engines seconds "$roofline" -q run --engine fake --arch mnist_cnn --synthetic --backend cpu --threads 1 \
    --warmup-iters 0 --iters 1 --env bench --log-dir "$1"
}
[ ! -d "$engines" ] || sides="$sides run run-empty"
"$python" -c 'import pandas' 2>/dev/null && sides="$sides pandas"
one() {
  case $1 in
    summary) seconds "$roofline" -q summary --metrics "$work/metrics.csv" ;;
    csv) seconds "$roofline" -q summary --metrics "$work/metrics.csv" --format csv ;;
    compare) seconds "$roofline" -q compare --metrics "$work/metrics.csv" --env env0 env1 ;;
    points) seconds "$roofline" -q points --metrics "$work/metrics.csv" --peaks "$work/peaks.json" --skip-missing ;;
    run) run "$work" ;;
    run-empty) run "$work/empty" ;;
    wc) seconds wc -l "$work/metrics.csv" ;;
    pandas) seconds "$python" -c "
import pandas
t = pandas.read_csv('$work/metrics.csv', usecols=['config_hash', 'samples_per_s'])
print(t.groupby('config_hash').samples_per_s.describe())" ;;
  esac
}
for side in $sides; do one "$side" >/dev/null; done
for ((i = 0; i < rounds; i++)); do
  for side in $sides; do one "$side" >>"$work/$side"; done
done
printf '%-10s %8s %8s %10s\n' command wall_s cpu_s peak_MiB
for side in $sides; do
  printf '%-10s %8s %8s %10.0f\n' "$side" "$(cut -d' ' -f1 "$work/$side" | median)" \
    "$(cut -d' ' -f2 "$work/$side" | median)" "$(cut -d' ' -f3 "$work/$side" | median)"
done

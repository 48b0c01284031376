#!/usr/bin/env bash
# Time of whole commands: start-up and counting. Usage: tests/bench/cli.sh [BUILD_DIR]
set -euo pipefail
cd "$(dirname "$0")/../.."
roofline=${1:-build/release}/bin/roofline

command -v hyperfine >/dev/null || { echo "cli.sh: install hyperfine" >&2; exit 77; }
[ -x "$roofline" ] || { echo "cli.sh: no $roofline; build first" >&2; exit 77; }

zoo="$roofline complexity --models all --batch-sizes 1 2 4 8 16 32 64 128 256 512"

hyperfine --shell=none --warmup 20 --runs 200 --style basic \
  -n version "$roofline version" \
  -n help "$roofline --help" \
  -n complexity "$roofline complexity --models resnet50 vgg16 mobilenet_v2 --batch-sizes 16 32 64 128" \
  -n zoo-csv "$zoo --format csv" \
  -n zoo-json "$zoo --format json"

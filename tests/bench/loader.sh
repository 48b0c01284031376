#!/usr/bin/env bash
# The loader against torchvision's transforms on Pillow, one thread each: ImageFolder, JPEG decode,
# RandomResizedCrop(224), flip, to floats, normalise, batch. The files are make_imagefolder's, of the
# sizes of ImageNet, quality 90, 4:2:0. Both sides take turns batch by batch, in processes of their
# own; what counts is CPU time, so that other work on the machine disturbs little, and the
# ratio is the median over pairs of neighbouring batches. The files lie in the page cache.
#
#   tests/bench/loader.sh [--build DIR] [--python PYTHON] [--steps N] [--batch N] [FOLDER]
#
# PYTHON (default /usr/bin/python3) needs torch and torchvision; FOLDER (default: made for the
# occasion) holds train/<class>/<image>.jpg.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$here/../../build/release python=/usr/bin/python3 steps=30 batch=32 folder=
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=$2; shift 2 ;;
    --python) python=$2; shift 2 ;;
    --steps) steps=$2; shift 2 ;;
    --batch) batch=$2; shift 2 ;;
    -h | --help) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "loader.sh: unknown option '$1'" >&2; exit 2 ;;
    *) folder=$1; shift ;;
  esac
done
"$python" -c 'import torchvision' 2>/dev/null ||
  { echo "loader.sh: $python has no torchvision; name another with --python" >&2; exit 77; }
cmake --build "$build" --target bench_loader make_imagefolder >/dev/null
work=
if [ -z "$folder" ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  folder=$work/images
  "$build/bin/make_imagefolder" --classes 10 --images 60 "$folder"
fi

read -r _ a b ratio low high _ < <("$python" "$here/lockstep.py" "$steps" 4 \
  -- "$python" "$here/torch_loader.py" "$folder" "$batch" \
  -- "$build/tests/bench/bench_loader" "$folder" "$batch")
per_s() { awk -v ms="$1" -v n="$batch" 'BEGIN { printf "%.0f", 1e3 * n / ms }'; }
printf '%-12s %16s\n' side 'images/CPU s'
printf '%-12s %16s\n' torchvision "$(per_s "$a")"
printf '%-12s %16s\n' roofline "$(per_s "$b")"
echo "ratio $ratio (quartiles $low - $high), $steps pairs of batches of $batch;" \
  "$("$python" -c 'import PIL, PIL.features, torchvision
print("torchvision", torchvision.__version__ + ", Pillow", PIL.__version__ + ", libjpeg-turbo",
      PIL.features.version("libjpeg_turbo"))')"

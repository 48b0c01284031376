#!/usr/bin/env bash
# Try the packages of packaging/build.sh in a clean Debian: the archive in a system without Python, the wheel
# in fresh virtual environments with and without PyTorch. Needs root, debootstrap, and 10 GB for PyTorch.
#
#   packaging/check.sh [--torch "VERSION..."] [DIST]
#
# Figures and reports are left in DIST/check for a look. The Debian is build/package/debian, made once.
set -euo pipefail
cd "$(dirname "$0")/.."

torch="2.11.0 2.4.1"
[ "${1:-}" != --torch ] || { torch=$2; shift 2; }
dist=$(realpath "${1:-build/package/dist}")
root=$PWD/build/package/debian
[ "$(id -u)" -eq 0 ] || { echo "$0: only root can chroot" >&2; exit 77; }
[ -e "$root/done" ] || { debootstrap --variant=minbase bookworm "$root" && touch "$root/done"; }
cp /etc/resolv.conf /etc/hosts "$root/etc/"
mkdir -p "$root/try"
for dir in proc sys dev; do mountpoint -q "$root/$dir" || mount --bind /$dir "$root/$dir"; done
trap 'for dir in proc sys dev; do umount "$root/$dir"; done' EXIT
rm -rf "$root/try" "$dist/check"
mkdir -p "$root/try" "$dist/check"
cp "$dist"/roofline-*.tar.gz "$dist"/roofline-*.whl tests/data/golden/train_{resnet18,mobilenet_v2,tiny_lm}.json "$root/try/"

inside() { # inside TEXT: run a script in the Debian, with its name first
  echo "== $1"
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/try LC_ALL=C.UTF-8 TORCH="$torch" \
    ${PIP_CERT:+PIP_CERT="/etc/ssl/certs/ca-certificates.crt"} chroot "$root" bash -euo pipefail -c "cd /try; $2"
}

inside "the archive, before anything is installed" '
  ! command -v python3
  tar xzf roofline-*.tar.gz
  export PATH="$(echo /try/roofline-*/bin):$PATH"
  roofline doctor
  mkdir -p project && cd project
  roofline complexity --models resnet18 --train
  roofline -q peaks measure --quick --only fp32.vector DRAM
  roofline run --engine planned --arch resnet18 --image-size 64 --batch-size 8 --warmup-iters 1 --iters 3 --synthetic
  roofline -q points --format json | grep -q "\"bound\""
  roofline -q plot --format png svg pdf
  roofline -q report --output report.pdf 2>report.err && [ ! -s report.err ]'
cp "$root"/try/project/figures/* "$root/try/project/report.pdf" "$dist/check/"

[ -e "$root/usr/bin/python3" ] || inside "packages" '
  apt-get update -qq; apt-get install -y -qq --no-install-recommends python3-venv man-db ca-certificates >/dev/null'
[ -z "${PIP_CERT:-}" ] || cp "$PIP_CERT" "$root/etc/ssl/certs/ca-certificates.crt"

inside "the wheel without PyTorch" '
  python3 -m venv v
  find v -type f -not -name "*.pyc" | sort >before
  v/bin/pip install -q --no-index roofline-*.whl
  . v/bin/activate
  man roofline | grep -q "ROOFLINE(1)\|roofline(1)"
  source <(roofline completion bash) && complete -p roofline
  python -m roofline --version
  python -c "import roofline; print(roofline.complexity(\"resnet18\")[\"models\"][0][\"params\"])" | grep -qx 11689512
  code=0; roofline run --engine torch --arch mnist_cnn --synthetic --iters 2 2>&1 | tee missing || code=$?
  [ $code -eq 77 ] && grep -q "pip install torch" missing
  pip uninstall -qy roofline
  find v -type f -not -name "*.pyc" | sort | diff before -
  rm -r v'

inside "the wheel with PyTorch" '
  for version in $TORCH; do
    python3 -m venv v
    v/bin/pip install -q --no-cache-dir torch==$version roofline-*.whl
    . v/bin/activate
    roofline list engines
    roofline run --engine torch@${version%.*} --arch resnet18 --image-size 64 --batch-size 8 --warmup-iters 1 --iters 2 --synthetic
    roofline verify --engine torch@${version%.*} train_*.json
    rm -r v
  done'
echo "all checks passed; look at $dist/check"

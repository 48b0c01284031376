#!/usr/bin/env bash
# Try the packages of packaging/build.sh, deb.sh and image.sh, each in a clean Debian without compilers: the archive
# without Python, the wheel in virtual environments with and without PyTorch, the Debian packages from installation
# to purge, the image as a container. Needs root, debootstrap, podman and runc for the image, and 10 GB for PyTorch.
#
#   packaging/check.sh [--only "archive deb image wheel"] [--torch "VERSION..."] [DIST]
#
# Figures and reports are left in DIST/check for a look. The Debian is build/package/debian, made once.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=packaging/bookworm.sh
. packaging/bookworm.sh

torch="2.11.0 2.4.1" kinds="archive deb image wheel"
while [ $# -gt 0 ]; do
  case $1 in
    --only) kinds=$2; shift 2 ;;
    --torch) torch=$2; shift 2 ;;
    -*) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2 ;;
    *) break ;;
  esac
done
dist=$(realpath "${1:-build/package/dist}")
rfl_make_debian
root=$(mktemp -d "$PWD/build/package/try.XXXXXX")
rm -rf "$dist/check"
mkdir "$dist/check"

# Commands that every script below may use. "!" does not stop a script, but a function that fails does.
common='
  absent() { ! "$@"; }
  absent command -v gcc
  absent command -v cc
  look_up() {
    man roofline | grep -qi "^roofline(1)"
    source <(roofline completion bash)
    complete -p roofline
  }
  # The main job: find out what works, count, measure, train, place, draw, report. $1: the engine
  main_job() {
    mkdir project
    cd project
    roofline doctor | tee doctor
    absent grep RFL_ doctor
    roofline complexity --models resnet18 --train
    roofline -q peaks measure --quick --only fp32.vector DRAM
    roofline run --engine "$1" --arch resnet18 --image-size 64 --batch-size 8 --warmup-iters 1 --iters 3 --synthetic
    roofline -q points --format json | grep "\"bound\""
    roofline -q plot --format png svg pdf
    roofline -q report --output report.pdf 2>report.err
    cat report.err
    [ ! -s report.err ]
    cd ..
  }'

leave() {
  for dir in proc sys dev; do ! mountpoint -q "$root/$dir" || umount "$root/$dir"; done
  rm -rf --one-file-system "$root"
}
trap leave EXIT

fresh() { # fresh FILE...: a clean Debian with these files in /try
  leave
  cp -a build/package/debian "$root"
  for dir in proc sys dev; do mount --bind /$dir "$root/$dir"; done
  mkdir "$root/try"
  cp "$@" "$root/try"
}

inside() { # inside TEXT SCRIPT: run a script in the Debian
  echo "== $1"
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/try LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive TORCH="$torch" \
    ${PIP_CERT:+PIP_CERT="/etc/ssl/certs/ca-certificates.crt"} chroot "$root" bash -euo pipefail -c "cd /try; $common; $2"
}

keep() { # keep KIND DIR: figures and report for a look
  mkdir -p "$dist/check/$1"
  cp "$2"/project/figures/* "$2/project/report.pdf" "$dist/check/$1"
}

check_archive() {
  fresh "$dist"/roofline-*.tar.gz
  inside "the archive" '
    absent command -v python3
    tar xzf roofline-*.tar.gz
    export PATH="$(echo /try/roofline-*/bin):$PATH"
    look_up
    main_job planned'
  keep archive "$root/try"
}

check_deb() {
  fresh "$dist"/roofline{,-engine-torch}_*.deb
  inside "the Debian packages" '
    apt-get update -qq
    apt-get install -y -qq ./roofline_*.deb >/dev/null
    code=0; roofline run --engine torch --arch mnist_cnn --synthetic --iters 2 2>&1 | tee missing || code=$?
    [ $code -eq 77 ]
    grep -q "install roofline-engine-torch" missing
    apt-get install -y -qq ./roofline-engine-torch_*.deb >/dev/null
    absent command -v gcc
    look_up
    source /usr/share/bash-completion/completions/roofline
    main_job torch'
  keep deb "$root/try"
  inside "after the purge" '
    apt-get purge -y -qq roofline roofline-engine-torch >/dev/null
    find / -xdev -name "*roofline*" -not -path "/try/*" -not -path "/var/cache/man/*" | diff /dev/null -'
}

check_image() {
  local work=$PWD/build/package/containers/work image
  local run=(run --rm --ulimit nofile=1024:1024 --ulimit nproc=1000:1000) # podman's own may exceed this machine's
  echo "== the image"
  rm -rf "$work"
  mkdir -p "$work"
  image=$(podman load -q -i "$dist"/roofline-*-image.tar)
  image=${image#*: }
  podman "${run[@]}" "$image" --version
  podman "${run[@]}" -v "$work:/work" --entrypoint bash "$image" -euo pipefail -c "$common; main_job torch"
  keep image "$work"
}

check_wheel() {
  fresh "$dist"/roofline-*.whl tests/data/golden/train_{resnet18,mobilenet_v2,tiny_lm}.json
  [ -z "${PIP_CERT:-}" ] || cp "$PIP_CERT" "$root/etc/ssl/certs/ca-certificates.crt"
  inside "the wheel without PyTorch" '
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends python3-venv >/dev/null
    absent command -v gcc
    python3 -m venv v
    find v -type f -not -name "*.pyc" | sort >before
    v/bin/pip install -q --no-index roofline-*.whl
    . v/bin/activate
    look_up
    python -m roofline --version
    python -c "import roofline; print(roofline.complexity(\"resnet18\")[\"models\"][0][\"params\"])" | grep -qx 11689512
    code=0; roofline run --engine torch --arch mnist_cnn --synthetic --iters 2 2>&1 | tee missing || code=$?
    [ $code -eq 77 ]
    grep -q "pip install torch" missing
    pip uninstall -qy roofline
    find v -type f -not -name "*.pyc" | sort | diff before -
    rm -r v'
  inside "the wheel with PyTorch" '
    for version in $TORCH; do
      python3 -m venv v
      v/bin/pip install -q --no-cache-dir torch==$version roofline-*.whl
      . v/bin/activate
      roofline list engines
      rm -rf project
      main_job torch@${version%.*}
      roofline verify --engine torch@${version%.*} train_*.json
      rm -r v
    done'
  keep wheel "$root/try"
}

for kind in $kinds; do "check_$kind"; done
echo "all checks passed: $kinds; look at $dist/check"

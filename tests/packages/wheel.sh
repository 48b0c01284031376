#!/usr/bin/env bash
# The wheel of this build in a fresh virtual environment: the program, its manual, the module, the engine of
# the PyTorch beside it, and what uninstalling leaves. packaging/check.sh does this for the real wheel.
#
#   wheel.sh SOURCE BUILD
set -euo pipefail
source=$1 build=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export SOURCE_DATE_EPOCH=1700000000 PYTHONDONTWRITEBYTECODE=1
cd "$tmp"

fail() { echo "wheel.sh: $*" >&2; exit 1; }
command -v dpkg-query >/dev/null || { echo "the SBOM names packages of Debian" >&2; exit 77; }
python3 -m venv v 2>v.log || { cat v.log >&2; echo "python3 cannot make a virtual environment: install python3-venv" >&2; exit 77; }
find v -type f | sort >before

cmake --install "$build" --prefix stage --strip --component core >install.log
# an engine that only works with the PyTorch of its version, as packaging/build.sh stages it
engine=$(ls stage/lib/roofline/plugins/engine_torch-*.so 2>/dev/null | head -n 1)
torch=$(echo "$engine" | sed 's/.*engine_torch-\([0-9.]*\)-.*/\1/')
if [ -n "$engine" ]; then
  mkdir "stage/lib/roofline/plugins/torch-$torch"
  mv "$engine" "stage/lib/roofline/plugins/torch-$torch/"
fi
for out in one two; do
  mkdir $out
  python3 "$source/packaging/pack.py" sbom stage 0.1.0
  python3 "$source/packaging/pack.py" wheel stage 0.1.0 $out
done
cmp one/*.whl two/*.whl || fail "two wheels of the same files differ"
python3 - stage/share/roofline/roofline.spdx.json stage <<'PY' || fail "the SBOM does not describe the files"
import hashlib, json, os, sys
sbom = json.load(open(sys.argv[1]))
for f in sbom["files"]:
    sums = {c["algorithm"]: c["checksumValue"] for c in f["checksums"]}
    assert sums["SHA256"] == hashlib.sha256(open(os.path.join(sys.argv[2], f["fileName"]), "rb").read()).hexdigest(), f
assert any(f["fileName"] == "./bin/roofline" for f in sbom["files"])
PY

v/bin/pip install --quiet --no-index --disable-pip-version-check one/*.whl
[ "$(v/bin/roofline --version)" = "$(v/bin/python -m roofline --version)" ] || fail "python -m roofline is another program"
[ "$(v/bin/python -c 'import roofline; print(roofline.complexity("resnet18")["models"][0]["params"])')" = 11689512 ] ||
  fail "roofline.complexity() does not return the parameters of ResNet-18"
v/bin/python -c 'import roofline
try: roofline.complexity("no_such_net")
except RuntimeError as error: assert "no_such_net" in str(error)
else: raise SystemExit(1)' || fail "roofline.complexity() hides an error"
[ -e v/share/man/man1/roofline.1 ] || fail "no manual beside the program"

if [ -n "$engine" ]; then
  site=$(echo v/lib/python3*/site-packages)/torch
  mkdir -p "$site/lib"
  ln -s "$(ldd "stage/lib/roofline/plugins/torch-$torch/${engine##*/}" | awk '$1 ~ /^libtorch_cpu/ { print $3 }')" "$site/lib/libtorch_cpu.so"
  engines() { v/bin/roofline list engines | grep "^ *torch" || true; }
  echo "__version__ = '$torch.1+cpu'" >"$site/version.py"
  engines | grep -q "torch-$torch" || fail "no engine for the PyTorch $torch of the environment: $(engines)"
  echo "__version__ = '99.0.1'" >"$site/version.py"
  ! engines | grep -q "torch-$torch" || fail "the engine of PyTorch $torch is listed for 99.0"
  rm -r "$site"
fi

v/bin/pip uninstall --quiet --yes --disable-pip-version-check roofline
find v -type f | sort | diff before - || fail "pip uninstall leaves files"

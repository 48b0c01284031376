# Debian packages, sourced by quickstart and runtests: the one list of what is needed.
# shellcheck shell=bash disable=SC2034 # the lists are for whoever sources this

# To build and run everything: compiler, libraries, fonts, libtorch with a fast BLAS.
RFL_PACKAGES=(
  build-essential cmake ninja-build pkg-config git
  libjansson-dev libexpat1-dev libcairo2-dev libpango1.0-dev libpng-dev libjpeg62-turbo-dev libhwloc-dev zlib1g-dev
  fonts-liberation libtorch-dev libgloo-dev libopenblas0-pthread libdnnl-dev
)

# To run the tests as well.
RFL_TEST_PACKAGES=(
  libcmocka-dev gnuplot-nox binutils man-db python3 python3-venv poppler-utils chromium zsh fish valgrind
  slurmctld slurmd slurm-client munge openmpi-bin
  python3-myst-parser python3-sphinx-rtd-theme
)

# The command behind each package family, for systems without apt.
rfl_print_missing() {
  cat >&2 <<'TEXT'
This system has no apt-get. Please install these yourself, then run this script again:
  a C17 and C++17 compiler, cmake 3.25 or later, ninja, pkg-config, git
  jansson, expat, cairo (with freetype), pango, libpng, libjpeg-turbo, hwloc 2, zlib: libraries and headers
  Liberation fonts (TrueType)
  oneDNN 2.6 or later, below 3 (for the planned engine)
  libtorch 1.13 or later (a PyTorch of pip or conda serves: set CMAKE_PREFIX_PATH to its torch directory)
TEXT
  case " $* " in *" tests "*) echo "  cmocka, gnuplot, objdump, man-db, zsh, fish, valgrind, python3 with venv, pdfinfo, Chromium, Slurm with munge, Open MPI, Sphinx with MyST and the theme of Read the Docs: for the tests" >&2 ;; esac
}

# rfl_install_packages PACKAGE...: install what is not there yet; sudo when not root.
rfl_install_packages() {
  local package missing=() sudo=()
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
      missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
      echo "Not root and no sudo. As root, run: apt-get install ${missing[*]}" >&2
      return 1
    }
    sudo=(sudo)
  fi
  echo "Installing ${#missing[@]} packages: ${missing[*]}" >&2
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >/dev/null
}

# What image.sh and check.sh share, sourced in the root of the tree: a clean Debian, and podman.
# shellcheck shell=bash

# build/package/debian, without compilers and Python: the packages are tried in copies of it, and it is the base of the
# image. Made once.
rfl_make_debian() {
  local root=$PWD/build/package/debian
  [ "$(id -u)" -eq 0 ] || { echo "$0: only root can use debootstrap and chroot" >&2; exit 77; }
  [ ! -e "$root/done" ] || return 0
  rm -rf "$root"
  debootstrap --variant=minbase --include=ca-certificates,man-db bookworm "$root" >&2
  rm -rf "$root"/var/cache/apt/archives/*.deb
  cp /etc/resolv.conf /etc/hosts "$root/etc/"
  echo 'Dpkg::Use-Pty "0";' >"$root/etc/apt/apt.conf.d/pty" # a chroot has no pseudo-terminals
  echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io" # as in container images: no fsync for each file
  touch "$root/done"
}

# Images are kept in build/package, so that those of the user do not change. runc, not crun, because that needs a
# system with one version of control groups.
podman() {
  command podman --root "$PWD/build/package/containers/root" --runroot "$PWD/build/package/containers/run" \
    --runtime runc "$@"
}

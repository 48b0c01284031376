#!/bin/sh
# qemu_pmu.sh SOURCE BUILD - count with profile/perf on an emulated PMU (armv8_pmuv3), whose counts of
# instructions are exact: init.c, a static arm64 program, is the init process of a kernel in QEMU.
#
# Needs qemu-system-aarch64, aarch64-linux-gnu-gcc, and a Debian arm64 kernel: /boot/vmlinuz-*-arm64, or
# the file that RFL_ARM64_KERNEL names.
set -eu
source=$1
build=$2
export LC_ALL=C

skip() {
	echo "skipped: $*" >&2
	exit 77
}

command -v qemu-system-aarch64 >/dev/null || skip "no qemu-system-aarch64: apt-get install qemu-system-arm"
command -v aarch64-linux-gnu-gcc >/dev/null ||
	skip "no cross compiler: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
kernel=${RFL_ARM64_KERNEL:-$(ls /boot/vmlinuz-*-arm64 2>/dev/null | tail -n 1)}
[ -r "$kernel" ] || skip "no arm64 kernel: set RFL_ARM64_KERNEL to the vmlinuz of Debian's linux-image-arm64, or run tests/ci/arm64.sh"

dir=$(mktemp -d "${TMPDIR:-/tmp}/roofline-pmu.XXXXXX")
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

# profile/perf and what it needs; nothing that needs a library of the target
cd "$source"
aarch64-linux-gnu-gcc -std=c17 -O1 -Wall -Wextra -Werror -D_POSIX_C_SOURCE=200809L -I. -ffunction-sections \
	-fdata-sections -Wl,--gc-sections -static -pthread -o "$dir/init" tests/pmu/init.c profile/perf/*.c \
	profile/capture/build.c profile/capture/finish.c profile/capture/store.c profile/formula/*.c \
	profile/chips.c base/keys.c profile/profile.c "$build/profile/formulas_data.c" machine/cpuid.c \
	machine/files.c machine/os_linux.c base/alloc.c base/buf.c base/clock.c base/err.c base/file.c base/launch.c \
	base/log.c base/num.c base/os_linux.c base/proc.c base/text.c -lm

# cpio_entry NAME MODE FILE: an entry of a "newc" archive, both parts padded to four bytes
cpio_entry() {
	size=$(wc -c <"$3")
	printf 070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x 1 "$2" 0 0 1 0 "$size" 0 0 0 0 \
		$((${#1} + 1)) 0
	printf '%s\0' "$1"
	head -c $(((4 - (110 + ${#1} + 1) % 4) % 4)) /dev/zero
	cat "$3"
	head -c $(((4 - size % 4) % 4)) /dev/zero
}
{ cpio_entry init 0100755 "$dir/init"; cpio_entry 'TRAILER!!!' 0 /dev/null; } >"$dir/initrd"

# -icount: virtual time passes with instructions, so that counts and times do not depend on this machine
timeout 110 qemu-system-aarch64 -M virt -cpu max -m 512 -smp 1 -icount shift=1,sleep=off -display none \
	-serial stdio -monitor none -no-reboot -nic none -kernel "$kernel" -initrd "$dir/initrd" \
	-append 'console=ttyAMA0 quiet panic=-1' </dev/null >"$dir/log" 2>&1 || {
	cat "$dir/log"
	echo "qemu-system-aarch64 failed, or took more than 110 s" >&2
	exit 1
}
cat "$dir/log"
tr -d '\r' <"$dir/log" | grep -qx 'all passed'

#!/bin/sh
# The program and its plugins are built as Debian's hardening=+all builds: position-independent,
# relocations read-only before main(), stack protector, glibc's checked functions, and on x86 landing
# pads and probed stacks.   check_hardened.sh ROOFLINE PLUGINS...
set -u
for tool in readelf objdump; do
	command -v $tool >/dev/null || { echo "$tool is not here: install binutils" >&2; exit 77; }
done
failed=0
# has FILE TEXT PATTERN WHAT
has()
{
	printf '%s\n' "$2" | grep -Eq -- "$3" || { echo "$1: $4" >&2; failed=1; }
}
for file in "$@"; do
	[ -e "$file" ] || continue
	elf=$(readelf -hdlsW "$file")
	has "$file" "$elf" 'Type: +DYN' 'is not position-independent'
	has "$file" "$elf" 'GNU_RELRO' 'has no read-only relocations'
	has "$file" "$elf" '\(FLAGS(_1)?\).*NOW|\(BIND_NOW\)' 'binds symbols late'
	has "$file" "$elf" ' __stack_chk_fail(@|$)' 'has no stack protector'
	has "$file" "$elf" ' __(mem|str|[vsnf]*printf|p?read)[a-z0-9]*_chk(@|$)' 'calls no checked functions'
	case $(readelf -hW "$file") in
	*X86-64*)
		code=$(objdump -d --no-show-raw-insn "$file" |
			awk '/endbr64/ { n++ } /or[lq]? +\$0x0,\(%[re]sp\)/ { print "probe" } END { print "pads", (n > 100) }')
		has "$file" "$code" 'pads 1' 'has no landing pads' # a few come from the C library's crt1.o
		readelf -p .comment "$file" | grep -q clang || # whose probes look like other stores
			has "$file" "$code" probe 'does not probe large stack frames'
		;;
	esac
done
exit $failed

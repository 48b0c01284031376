#!/usr/bin/env bash
# The processes of --world N cannot be reached from outside: while they train, nothing listens except at
# 127.0.0.1. A stranger on this machine who connects there, sends a byte and stays does not hold them up:
# Gloo may take it for the other process, and then the run ends with an error that says so.
#
#   local.sh ROOFLINE
#
# Exit: 0 passed, 1 failed, 77 there is no engine that can join.
set -euo pipefail

roofline=$(readlink -f "$1")
export LC_ALL=C
"$roofline" list engines --format csv | grep -Eq '^engines,torch[^,]*,(ok|warn),' ||
	{ echo "skipped: no torch engine" >&2; exit 77; }

dir=$(mktemp -d "${TMPDIR:-/tmp}/roofline-local.XXXXXX")
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
cd "$dir"

fail() {
	echo "FAILED: $*" >&2
	cat err >&2
	kill "$run" 2>/dev/null || true
	exit 1
}

descendants() {
	local pid
	for pid in $(cat /proc/"$1"/task/*/children 2>/dev/null); do
		echo "$pid"
		descendants "$pid"
	done
}

# sockets: STATE ADDRESS:PORT of the TCP sockets of our processes, in hexadecimal; 0A listens
sockets() {
	local inodes
	inodes=$(for pid in $run $(descendants "$run"); do
		readlink /proc/"$pid"/fd/* 2>/dev/null | sed -n 's/^socket:\[\([0-9]*\)\]$/\1/p'
	done) || true
	awk -v inodes="$inodes" 'BEGIN { n = split(inodes, all); for (i = 1; i <= n; i++) ours[all[i]] = 1 }
		$10 in ours { print $4, $2 }' /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

# train LABEL: trains in two processes and looks at their sockets; with $stranger, connects to those that
# listen. Returns the exit status of the run.
train() {
	local at state fd connected=
	"$roofline" run -q --arch tiny_lm --context-length 32 --batch-size 8 --warmup-iters 0 --iters 60 \
		--backend cpu --threads 1 --synthetic --world 2 --world-timeout 60 --label "$1" --log-dir logs \
		>out 2>err &
	run=$!
	seen=
	while kill -0 "$run" 2>/dev/null; do
		while read -r state at; do
			case $at in
			0100007F:*) seen=yes ;;
			*) fail "a socket in state $state has the address $at" ;;
			esac
			[ "$stranger$state" = yes0A ] || continue
			case " $connected" in
			*" $at "*) continue ;;
			esac
			connected+="$at " # the connection is open until the end
			if exec {fd}<>/dev/tcp/127.0.0.1/$((16#${at#*:})); then printf '\1' >&"$fd"; fi 2>/dev/null
		done < <(sockets)
	done
	wait "$run"
}

stranger=
train alone || fail "the run ended with $?"
[ -n "$seen" ] || fail "no socket was seen: the test proves nothing"
grep -q '^alone,\|,alone,' logs/metrics.csv || fail "no row of all processes"

stranger=yes
SECONDS=0
if train disturbed; then
	grep -q '^disturbed,\|,disturbed,' logs/metrics.csv || fail "no row of all processes"
else
	grep -q '^roofline run: disturbed: ' err ||
		fail "the disturbed run does not say what ended it"
fi
[ "$SECONDS" -lt 120 ] || fail "the disturbed run took $SECONDS s"

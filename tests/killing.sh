# killing.sh - to source by tests that kill the program: a scratch directory that goes with the script, as
# does the process in $pid, and moments in time.
export LC_ALL=C
dir=$(mktemp -d "${TMPDIR:-/tmp}/roofline-kill.XXXXXX")
pid=''
stop() {
	[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true
	rm -rf "$dir"
}
trap stop EXIT
trap 'exit 1' HUP INT TERM

needs_torch() {
	"$roofline" list engines --format csv | grep -Eq '^engines,torch[^,]*,(ok|warn),' ||
		{ echo "skipped: no torch engine" >&2; exit 77; }
}
now_ms() { echo $(($(date +%s%N) / 1000000)); }
sleep_ms() { sleep "$(($1 / 1000)).$(printf %03d $(($1 % 1000)))"; }

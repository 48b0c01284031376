# Where the kernel shows no PMU of a core, perf still counts what the kernel itself counts, and says
# why there is no more. A system that has one is skipped.
ls /sys/bus/event_source/devices 2>/dev/null | grep -Eq '^(cpu|cpu_core|armv.*)$' && { echo "a PMU is here" >&2; exit 77; }
roofline list sources --format json >rows.json
grep -q '"name": "perf"' rows.json || echo "no row of perf"
grep -q 'perf_event_open' rows.json && { echo "perf events are forbidden here" >&2; exit 77; }
grep -Eq '"detail": "[^"]*events of the kernel only; this (virtual machine|system) shows no hardware counters' rows.json ||
	cat rows.json

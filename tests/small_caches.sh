#!/bin/sh
# Print a topology of this process's CPUs, for HWLOC_SYNTHETIC, whose last-level cache has 8 MiB: ceilings
# are then measured with arrays of 32 MiB. Set HWLOC_THISSYSTEM=1 as well.
cpus=
for range in $(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status | tr , ' '); do
	cpus=$cpus$(seq -f ,%.0f "${range%-*}" "${range#*-}" | tr -d '\n')
done
n=$(echo "$cpus" | tr -dc , | wc -c)
echo "NUMANode:1(memory=1GB) L3Cache:1(size=8388608) L2Cache:$n(size=1048576) L1dCache:1(size=32768)" \
	"Core:1 PU:1(indexes=${cpus#,})"

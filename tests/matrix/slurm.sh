#!/usr/bin/env bash
# A matrix farmed out by a real Slurm, and one run of two processes by its srun: munged, slurmctld and slurmd of our own, started by hand in a
# temporary directory, with their own ports; all of it is stopped and removed in the end.
#
#   slurm.sh ROOFLINE ENGINES [RUNS]     ENGINES: directory of the engine that computes nothing; RUNS: how many the
#                                        node shares that dies (default 24, a multiple of 6)
#
# Exit: 0 passed, 1 failed, 77 Slurm cannot run here (the reason is printed).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
roofline=$(readlink -f "$1")
ROOFLINE_PLUGIN_PATH=$(readlink -f "$2")
runs=${3:-24}
export ROOFLINE_PLUGIN_PATH
export PATH=$PATH:/usr/sbin:/sbin LC_ALL=C
started=()
dir=''

skip() {
	echo "skipped: $*" >&2
	exit 77
}

fail() {
	echo "FAILED: $*" >&2
	for log in "$dir"/*.log "$dir"/work/logs/tasks/*/slurm-*.out; do
		[ ! -f "$log" ] || { echo "--- $log" >&2; tail -n 20 "$log" >&2; }
	done
	exit 1
}

# Only what we started, the last first.
stop_all() {
	local i pid
	for ((i = ${#started[@]} - 1; i >= 0; i--)); do
		pid=${started[i]}
		kill "$pid" 2>/dev/null || continue
		for _ in $(seq 50); do
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.1
		done
		kill -KILL "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	[ -z "$dir" ] || rm -rf "$dir"
}
trap stop_all EXIT
trap 'exit 1' HUP INT TERM

for program in munged slurmctld slurmd sbatch srun squeue scontrol sinfo; do
	command -v $program >/dev/null || skip "no $program: install slurm-wlm and munge"
done
[ "$(id -u)" -eq 0 ] || skip "slurmd starts jobs as other users: needs root"
name=$(hostname -s 2>/dev/null || hostname)
case $name in '' | *[!A-Za-z0-9-]*) skip "'$name' is no host name that Slurm takes" ;; esac

dir=$(mktemp -d "${TMPDIR:-/tmp}/roofline-slurm.XXXXXX")
chmod 755 "$dir"
mkdir "$dir/state" "$dir/spool" "$dir/munge" "$dir/work" "$dir/locks"

# wait_for SECONDS COMMAND...
wait_for() {
	local until=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $until ] || return 1
		sleep 0.1
	done
}

free_port() {
	local port
	for _ in $(seq 50); do
		port=$((20000 + RANDOM % 12000))
		(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo $port; return; }
	done
	return 1
}

# ---- the cluster ----

head -c 1024 /dev/urandom >"$dir/munge/key"
chmod 400 "$dir/munge/key"
munged --foreground --force --key-file="$dir/munge/key" --socket="$dir/munge/socket" \
	--pid-file="$dir/munge/pid" --log-file="$dir/munge/log" --seed-file="$dir/munge/seed" \
	>"$dir/munged.log" 2>&1 &
started+=($!)
wait_for 10 test -S "$dir/munge/socket" || skip "munged does not start: $(tail -n 1 "$dir/munged.log")"

cat >"$dir/slurm.conf" <<TEXT
ClusterName=roofline
SlurmctldHost=$name(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,sched_min_interval=100000,batch_sched_delay=0
KillWait=2
NodeName=$name NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=main Nodes=$name Default=YES MaxTime=INFINITE State=UP
PartitionName=epyc Nodes=$name State=UP
PartitionName=xeon Nodes=$name State=UP
TEXT
export SLURM_CONF=$dir/slurm.conf

slurmctld -D -i -f "$SLURM_CONF" >"$dir/slurmctld.log" 2>&1 &
control=$!
started+=($control)
wait_for 15 scontrol ping || skip "slurmctld does not start: $(tail -n 4 "$dir/slurmctld.log" | tr '\n' ';')"
start_node() {
	setsid slurmd -D -f "$SLURM_CONF" >>"$dir/slurmd.log" 2>&1 &
	node=$!
	started+=($node)
}
start_node
is_idle() { [ "$(sinfo -h -o %T)" = idle ]; }
wait_for 15 is_idle || skip "slurmd does not start: $(tail -n 4 "$dir/slurmd.log" | tr '\n' ';')"

# ---- the matrix ----

cd "$dir/work"
export ROOFLINE_LOCK_DIR=$dir/locks
cat >matrix.json <<'TEXT'
{
  "schema": "roofline.matrix/1", "name": "small", "repeats": 2,
  "environments": [{"name": "lab", "backend": "cpu"}],
  "models": ["resnet18", "alexnet"], "batch_sizes": [2], "precisions": ["fp32"],
  "options": {"engine": "fake", "synthetic": true, "image-size": 64, "warmup-iters": 1, "iters": 5, "threads": 1}
}
TEXT

job_ends() { [ -z "$(squeue -h -o %i)" ]; }
submit() { # FILE OPTION...
	"$roofline" matrix slurm "$@" --output job.sh --log-dir logs -- --cpus-per-task=1 --time=5 --requeue 2>submit.err ||
		fail "matrix slurm: $(cat submit.err)"
	sbatch job.sh >sbatch.out 2>&1 || fail "sbatch: $(cat sbatch.out)"
	wait_for 30 job_ends || fail "the job does not end: $(squeue 2>&1)"
}

rows() { tail -n +2 logs/metrics.csv | wc -l; }

submit matrix.json --at-once 2
grep -q '^#SBATCH --array=0-3%2$' job.sh || fail "no array of four tasks in $(cat job.sh)"
[ "$(ls logs/tasks | sort | tr '\n' ' ')" = "lab-0 lab-1 lab-2 lab-3 " ] || fail "tasks: $(ls logs/tasks)"
[ ! -e logs/metrics.csv ] || fail "a task wrote into the common directory"
! "$roofline" matrix status matrix.json --log-dir logs >status.out 2>&1 || fail "complete before the merge"
"$roofline" matrix merge matrix.json --log-dir logs >merge.out || fail "merge: $(cat merge.out)"
[ "$(tail -n 1 merge.out)" = "small: 4 of 4 runs ok" ] || fail "merge: $(cat merge.out)"
"$roofline" matrix status matrix.json --log-dir logs >status.out || fail "status: $(cat status.out)"
[ "$(rows)" -eq 4 ] || fail "$(rows) rows instead of 4"
[ "$(ls logs/steps | wc -l) $(ls logs/time | wc -l)" = "4 4" ] || fail "files: $(ls logs/steps logs/time)"

# Again: nothing is new, and a second array with other shards finds all of it done.
"$roofline" matrix merge matrix.json --log-dir logs >merge.out
grep -q '^0 rows added, 4 already present; 0 files added, ' merge.out || fail "merge again: $(cat merge.out)"
submit matrix.json --shards 2
"$roofline" matrix merge matrix.json --log-dir logs >merge.out
[ "$(rows)" -eq 4 ] || fail "what was merged was run again: $(rows) rows"

# One run fails in a task of its own; the others are there, and its reason is in the status.
sed 's/"repeats": 2/"repeats": 3/; s/"small"/"more"/' matrix.json >more.json
RFL_FAKE=edevmem:forward:0 submit more.json --only lab/alexnet
submit more.json --only lab/resnet18
"$roofline" matrix merge more.json --log-dir logs >merge.out
[ "$(tail -n 1 merge.out)" = "more: 5 of 6 runs ok" ] || fail "merge of more: $(cat merge.out)"
! "$roofline" matrix status more.json --log-dir logs >status.out || fail "complete: $(cat status.out)"
grep -q '^lab_alexnet_fp32_bs2_run3 .*oom .*fake: no memory left' status.out || fail "status: $(cat status.out)"
submit more.json --retry-failed
"$roofline" matrix merge more.json --log-dir logs >merge.out
[ "$(tail -n 1 merge.out)" = "more: 6 of 6 runs ok" ] || fail "after the retry: $(cat merge.out)"
"$roofline" matrix status more.json --log-dir logs >status.out || fail "status: $(cat status.out)"

# A task that is preempted in the middle of a run hears of it: its row says so, and queued again it goes on.
has_row() { grep -q ",$1," again/tasks/lab-0/metrics.csv; }
"$roofline" matrix slurm matrix.json --only lab/alexnet --shards 1 --output job.sh --log-dir again -- \
	--cpus-per-task=1 --time=5 --requeue 2>submit.err || fail "matrix slurm: $(cat submit.err)"
job=$(RFL_FAKE_MS=200,200,100 RFL_FAKE_PID=$dir/begun sbatch --parsable job.sh) || fail "sbatch: $job"
wait_for 30 test -s "$dir/begun" || fail "the task does not begin: $(squeue 2>&1)"
scontrol requeue "${job}_0" || fail "scontrol requeue"
wait_for 30 has_row interrupted || fail "no row of the run that was interrupted"
waits_to_begin() { [ "$(squeue -h -o '%T %r')" = 'PENDING BeginTime' ]; } # for two minutes, on its own
wait_for 30 waits_to_begin || fail "the task is not queued again: $(squeue 2>&1)"
sleep 2 # a credential of the very second in which the last one was revoked counts as revoked, too
scontrol update "JobId=${job}_0" StartTime=now || fail "scontrol update"
wait_for 60 job_ends || fail "the task that was queued again does not end: $(squeue 2>&1)"
"$roofline" matrix status matrix.json --only lab/alexnet --log-dir again/tasks/lab-0 >status.out ||
	fail "queued again: $(cat status.out)"
# Two tasks of one step train together.
mkdir meet
RFL_FAKE_WORLD=$PWD/meet srun --ntasks 2 --cpus-per-task 1 --time 5 "$roofline" run -q --engine fake --arch resnet18 \
	--image-size 64 --batch-size 2 --synthetic --warmup-iters 1 --iters 5 --backend cpu --threads 1 --env lab --label both \
	--world env --world-timeout 30 --log-dir several >srun.out 2>&1 || fail "srun: $(cat srun.out)"
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
	{ print $at["label"], $at["status"], $at["launcher"], $at["world_size"], $at["batch"] }' several/metrics.csv |
	sort >srun.rows
[ "$(tr '\n' ';' <srun.rows)" = "both ok slurm 2 4;both_rank0 ok slurm 2 2;both_rank1 ok slurm 2 2;" ] ||
	fail "rows of srun: $(cat srun.rows)"

# A node dies in the middle of an array, with all that runs on it. When it is back its tasks run again, and
# every run is there once.
sed "s/\"repeats\": 2/\"repeats\": $((runs / 6))/; s/\"small\"/\"many\"/; s/\"batch_sizes\": \[2\]/\"batch_sizes\": [1, 2, 4]/" \
	matrix.json >many.json
"$roofline" matrix slurm many.json --shards 6 --log-dir many --output job.sh -- --cpus-per-task=1 --requeue 2>submit.err ||
	fail "matrix slurm: $(cat submit.err)"
many_rows() { cat many/tasks/*/metrics.csv 2>/dev/null | grep -c ",$1," || true; }
some_are_there() { [ "$(many_rows ok)" -ge $((runs / 6)) ]; }
RFL_FAKE_MS=20,20,20 sbatch --parsable job.sh >sbatch.out 2>&1 || fail "sbatch: $(cat sbatch.out)"
wait_for $((60 + runs)) some_are_there || fail "no run of the array ends: $(squeue 2>&1)"
on_node() { # the node's daemon and all that it started inherit the path of the configuration
	local file pid
	for file in $(grep -lzx "SLURM_CONF=$SLURM_CONF" /proc/[0-9]*/environ 2>/dev/null); do
		pid=${file//[!0-9]/}
		[ "$pid" = "$control" ] || [ "$(ps -o ppid= "$pid" | tr -d ' ')" = $$ ] && [ "$pid" != "$node" ] || echo "$pid"
	done
}
for pid in $(on_node); do kill -KILL "$pid" 2>/dev/null || true; done
# slurmctld notices on its own after SlurmdTimeout, five minutes
scontrol update "NodeName=$name" State=DOWN Reason=died || fail "scontrol update of the node"
before=$(many_rows ok)
[ "$before" -lt "$runs" ] || fail "the node died too late: $before rows"
start_node
scontrol update "NodeName=$name" State=RESUME || fail "scontrol update of the node"
wait_for 30 is_idle || fail "the node does not come back: $(sinfo 2>&1)"
sleep 2
for job in $(squeue -h -r -o %i); do scontrol update "JobId=$job" StartTime=now 2>/dev/null || true; done
wait_for $((60 + runs)) job_ends || fail "the array does not end: $(squeue 2>&1)"
"$roofline" matrix merge many.json --log-dir many >merge.out || fail "merge: $(cat merge.out)"
[ "$(tail -n 1 merge.out)" = "many: $runs of $runs runs ok" ] || fail "merge after the death: $(cat merge.out)"
[ "$(grep -c ,ok, many/metrics.csv)" -eq "$runs" ] || fail "$(grep -c ,ok, many/metrics.csv) rows instead of $runs"
echo "the node died after $before of $runs runs"

# The page, with the real engine if there is one; the node is in both of its partitions.
build=$(dirname "$(dirname "$roofline")")
if ls "$build"/lib/roofline/plugins/engine_torch-* >/dev/null 2>&1; then
	"$here/../../docs/record" --check "$build" docs/guide/cluster.md >page.out 2>&1 || fail "the page: $(cat page.out)"
fi
echo "passed in $SECONDS s"

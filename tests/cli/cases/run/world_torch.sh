# Two processes with half the batch each go the way of one with all of it, in the real engine: by
# --world, and by a launcher's variables. The network has neither batch norm nor dropout, which are
# each process's own.
roofline list engines --format csv | grep -q '^engines,torch[^,]*,ok,' || { echo "no engine" >&2; exit 77; }

set -- --arch tiny_lm --context-length 16 --warmup-iters 0 --iters 8 --backend cpu --threads 1 --synthetic --env lab --lr 0.05 \
	--log-dir L
roofline run -q "$@" --batch-size 8 --label lab_one >out 2>err || cat out err
roofline run -q "$@" --batch-size 4 --label lab_two --world 2 --world-timeout 60 >out 2>err || cat out err
if grep -q 'libgloo-dev' L/metrics.csv; then echo "built without Gloo" >&2; exit 77; fi
port=$((20000 + $$ % 12000))
for rank in 0 1; do
	RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
		roofline run -q "$@" --batch-size 4 --label lab_env --world env --world-timeout 60 \
		--bucket-mb 0.01 >out$rank 2>err$rank || cat out$rank err$rank &
done
wait

# losses LABEL
losses() {
	id=$(awk -F, -v l="$1" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		$at["label"] == l { print $at["run_id"] }' L/metrics.csv)
	awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "loss") k = i; next } { print $k }' "L/steps/$id.csv"
}

# same LABEL LABEL: all eight losses within 1e-5 of each other, and falling
same() {
	losses "$1" >a
	losses "$2" >b
	paste a b | awk -v what="$1 and $2" '
		{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-5 * $1) bad = bad " " NR ":" $1 "/" $2; if (NR == 1) first = $1; last = $1 }
		END { print what ":", NR, "losses,", (bad == "" ? "the same" : "different:" bad) ",", last < first ? "falling" : "not falling" }'
}

same lab_one lab_two
same lab_one lab_env
losses lab_two_rank0 >a
losses lab_two_rank1 >b
cmp -s a b && echo "both ranks had the same data"
grep -c '_rank[01],' L/metrics.csv
exit 0

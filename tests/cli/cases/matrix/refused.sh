# Options that a run does not have or does not take are found before anything runs, with their place.
try() {
	sed "s|\"threads\": 1|\"threads\": 1, $1|" "$(dirname "$0")/small.json" >m.json
	for command in expand run status slurm merge; do
		roofline matrix $command m.json >/dev/null 2>err
		echo "$command: exit $?: $(cat err)"
	done | sed 's/^[a-z]*: //; s/roofline matrix [a-z]*: //' | sort -u
}
try '"itres": 5'
try '"zebra": 5'
try '"lr": "abc"'
try '"channels-last": 5'
try '"optimizer": true'
try '"seed": [1, 2]'
try '"momentum": 0.9, "optimizer": "adamw"'
try '"counter-sets": ["core", "flops"]'
try '"counters": "step", "counter-sets": ["core", "flop"]'
try '"label": "x"'
sed 's/"synthetic": true, //' "$(dirname "$0")/small.json" >m.json
roofline matrix run m.json
echo "exit $?"
m=$(dirname "$0")/small.json
for words in "expand $m --only nobody" "expand $m --only lab/resnet18/fp32/3" "run $m --shard 3/3" \
	"run $m --shard x" "run nothing.json" "run $m --only lab --shuffle -2" "merge $m" "merge $m nothing" \
	"slurm $m --time abc" "slurm $m --time 1:2:3:4" "slurm $m --mem lots" "slurm $m --gpus x:y:z" \
	"slurm $m --time 1-12:30 --mem 16GB --gpus a100:1,l4:2" "slurm $m --shards 15" \
	"slurm $m --gpus 1;2 --time 3 0" "slurm $m --partition a'b"; do
	roofline matrix $words >/dev/null 2>err
	echo "exit $?: $(sed "s|$(dirname "$0")/||g" err)"
done
roofline matrix slurm "$m" --account '' >/dev/null
roofline matrix slurm "$m" --partition 'a
b' >/dev/null
roofline matrix slurm "$m" --log-dir 'a
b' >/dev/null
ls

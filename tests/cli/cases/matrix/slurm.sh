# The script for sbatch: what is asked for, and what each task does.
m=matrix.json
cp "$(dirname "$0")/small.json" "my matrix.json"
cp "my matrix.json" $m
roofline matrix slurm $m | sed "s|$ROOFLINE|ROOFLINE|"
roofline matrix slurm "my matrix.json" --only lab/resnet18 --shards 3 --at-once 2 --gpus l4:1 --cpus 8 --mem 16G \
	--time 1:30:00 --partition gpu --account me --qos high --nodelist 'n[1-4]' --constraint 'a100|h100' \
	--exclusive --requeue --retry-failed --job-name mine --setup 'module load cuda' --setup 'echo "$HOME"' \
	--log-dir "my logs" --output job.sh
sed "s|$ROOFLINE|ROOFLINE|" job.sh
bash -n job.sh
ls

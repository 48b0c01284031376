# The runs of a matrix, whole and in part, for people and for programs.
m=$(dirname "$0")/small.json
roofline matrix expand "$m"
roofline matrix expand "$m" --only gpu --only lab/alexnet --format csv --log-dir "my logs"
roofline matrix expand "$m" --shard 1/4 --only 'lab/resnet*/fp32/2' --format jsonl
roofline matrix expand "$m" --only lab_alexnet_fp32_bs8_run2 --format json
roofline matrix expand "$m" --only 'lab/*/*/8' --format csv | wc -l
for i in 0 1 2; do roofline matrix expand "$m" --shard $i/3 --format jsonl; done | sort -u | wc -l

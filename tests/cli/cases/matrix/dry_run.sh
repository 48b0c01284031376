# What would be run, as commands.
m=$(dirname "$0")/small.json
roofline matrix run "$m" --only lab --dry-run
roofline matrix run "$m" --only lab --dry-run --shuffle 7 | sed 's/.*--label=//'
roofline matrix run "$m" --only lab --dry-run --shuffle 7 --log-dir 'my logs' --shard 1/4
ls

# What is told is kept, stands in the table, and is taken back; the record is of this machine.
roofline env --no-engines --env lab --note zone='b, upstairs' colour=green >table
grep -c '^Zone .*b, upstairs (noted)$' table
grep -c '^colour  *green$' table
roofline env --no-engines --env lab --note colour= --format md | grep -c colour
ls -A logs
head -n 1 logs/env_info.md
grep -c '"zone": "b, upstairs"' logs/env.json
roofline env --no-engines --env lab --format json | grep -c '"load_1min"'

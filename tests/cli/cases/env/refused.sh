# Each is refused before anything is written.
for words in "--env Lab" "--note zone" "--note =x" "--note Zone=x" "--format csv"; do
	# shellcheck disable=SC2086
	roofline env --no-engines $words
	echo "exit $?"
done
mkdir logs
echo '{}' >logs/env.json
roofline env --no-engines --env lab
echo "exit $?"
ls logs

# The inputs are read once: pipes will do, and the fingerprints are of what came through them.
cp "$RFL_TEST_DATA"/plot/points.csv "$RFL_TEST_DATA"/plot/peaks.json .
roofline plot --points points.csv --peaks peaks.json --env lab_cpu --format svg -o files
mkdir pipes
mkfifo pipes/points.csv pipes/peaks.json
cat points.csv >pipes/points.csv &
cat peaks.json >pipes/peaks.json &
timeout 20 roofline plot --points pipes/points.csv --peaks pipes/peaks.json --env lab_cpu --format svg -o pipes
cmp files/roofline_lab_cpu.svg pipes/roofline_lab_cpu.svg

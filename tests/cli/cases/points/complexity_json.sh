# The file of `roofline complexity` and the program's own count give the same points.
cp "$RFL_TEST_DATA"/roofline/metrics.csv "$RFL_TEST_DATA"/roofline/peaks.json .
roofline -q complexity --models resnet50 mobilenet_v2 --batch-sizes 4 32 --output-dir S >/dev/null
roofline -q points --metrics metrics.csv --peaks peaks.json --env lab_cpu --output own.csv >/dev/null
roofline -q points --metrics metrics.csv --peaks peaks.json --env lab_cpu --complexity-json S/summary.json --output file.csv >/dev/null
cmp own.csv file.csv && wc -l <file.csv

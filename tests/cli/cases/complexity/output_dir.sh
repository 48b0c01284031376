# the file and standard output are one document; one list of layers per model
roofline -q complexity -m resnet18 mobilenet_v2 -b 16 32 --output-dir logs/sums --format json > stdout.json
cmp stdout.json logs/sums/summary.json && ls logs/sums
head -n 12 logs/sums/resnet18.txt
tail -n 8 logs/sums/mobilenet_v2.txt

roofline -q complexity -m tiny_lm --context-length 16 64 --write-net nets --output-dir lists --columns context params --format csv
ls nets lists
roofline complexity --net nets/tiny_lm-16.json nets/tiny_lm-64.json --write-net again
echo $?
roofline complexity -m tiny_lm --net nets/tiny_lm-64.json --output-dir again > /dev/null
echo $?
ls

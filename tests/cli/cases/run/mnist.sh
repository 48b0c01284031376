# MNIST is taken as it is: a run with --no-augment is a repeat of one without, and no row claims a crop.
ROOFLINE_PLUGIN_PATH=$(dirname "$ROOFLINE")/../tests/engines
[ -f "$ROOFLINE_PLUGIN_PATH/engine_fake-1.0-test.so" ] || { echo "no fake engine" >&2; exit 77; }
export ROOFLINE_PLUGIN_PATH
mkdir mnist
{ printf '\0\0\010\003\0\0\0\010\0\0\0\034\0\0\0\034' && head -c 6272 /dev/zero; } >mnist/train-images-idx3-ubyte
{ printf '\0\0\010\001\0\0\0\010' && head -c 8 /dev/zero; } >mnist/train-labels-idx1-ubyte
for words in "" --no-augment "--data-mode mnist"; do
	roofline -q run --engine fake --backend cpu --arch mnist_cnn --data mnist --batch-size 2 --iters 2 \
		--threads 1 --workers 1 $words >/dev/null || exit
done
roofline -q summary --format csv | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
	NR > 1 { print $at["data_mode"], "augment", $at["augment"], "n", $at["n"] }'

# A data set without a readable image: the run has a row, which says failed and names the folder.
ROOFLINE_PLUGIN_PATH=$(dirname "$ROOFLINE")/../tests/engines
command -v make_imagefolder >/dev/null || { echo "built without libjpeg-turbo" >&2; exit 77; }
[ -f "$ROOFLINE_PLUGIN_PATH/engine_fake-1.0-test.so" ] || { echo "no fake engine" >&2; exit 77; }
export ROOFLINE_PLUGIN_PATH
mkdir -p images/train/a
echo 'not a picture' >images/train/a/1.jpg
roofline -q run --engine fake --arch resnet18 --image-size 32 --batch-size 2 --data images --workers 1 --iters 2 \
	--backend cpu --threads 1 --log-dir L
echo "exit $?"

# A ring of batches that is larger than memory is refused before it is taken.
command -v make_imagefolder >/dev/null || { echo "built without libjpeg-turbo" >&2; exit 77; }
ROOFLINE_PLUGIN_PATH=$(dirname "$ROOFLINE")/../tests/engines
[ -f "$ROOFLINE_PLUGIN_PATH/engine_fake-1.0-test.so" ] || { echo "no fake engine" >&2; exit 77; }
export ROOFLINE_PLUGIN_PATH
mkdir -p d/train/a
cp "$RFL_TEST_DATA/images/jpeg_444.jpg" d/train/a/1.jpg
set -- --engine fake --backend cpu --arch resnet18 --data d --warmup-iters 1 --iters 1 --threads 1 --workers 1 --env lab
roofline run "$@" --batch-size 1048576 --prefetch-factor 1024 --label lab_big >out 2>err
echo "exit $?"
sed 's/: ok,.*/: ok/; s/[0-9.]* [KMGT]iB/BYTES/g' out err | grep -v time/

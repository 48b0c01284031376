# One batch per epoch, cold or warm; the threads that a GPU would need.
command -v make_imagefolder >/dev/null || { echo "built without libjpeg-turbo" >&2; exit 77; }
make_imagefolder --classes 2 --images 8 dir
roofline bench loader --data dir --batch-size 16 --image-size 64 --workers 0 1 --seconds 0.05 \
	--page-cache both --feed 1e6 2>/dev/null |
	sed -n 's/[0-9][0-9.,]*/N/g; s/  *$//; /^imagefolder/s/  */ /gp; /need/p'
roofline bench loader --data dir --batch-size 16 --image-size 64 --workers 1 --iters 3 --channels-last \
	--format json | grep -c '"images": 48,'

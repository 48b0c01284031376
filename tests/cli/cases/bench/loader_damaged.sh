# A folder with 5 % damaged files, rare forms of JPEG and odd names: each damaged file is named once,
# however many rows it meets.
command -v make_imagefolder >/dev/null || { echo "built without libjpeg-turbo" >&2; exit 77; }
make_imagefolder --classes 3 --images 40 --damaged 5 --odd dir
for options in "--workers 3" "--workers 3 --cached" "--workers 0,2 --no-augment"; do
	roofline bench loader --data dir --image-size 32 --batch-size 20 --iters 6 \
		--format csv $options 2>log | cut -d, -f1,2,5,11
	sed 's/^roofline: warning: //' log | sort
done

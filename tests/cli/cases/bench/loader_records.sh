# CIFAR-10 and MNIST (gzipped) are read into memory; a damaged file is refused.
mkdir cifar mnist
for i in 1 2 3 4 5; do head -c 30730 /dev/zero >cifar/data_batch_$i.bin; done
{ printf '\000\000\010\003\000\000\000\024\000\000\000\034\000\000\000\034'; head -c 15680 /dev/zero; } |
	gzip -n >mnist/train-images-idx3-ubyte.gz
{ printf '\000\000\010\001\000\000\000\024'; head -c 20 /dev/zero; } |
	gzip -n >mnist/train-labels-idx1-ubyte.gz
for dir in cifar mnist; do
	roofline bench loader --data $dir --workers 0 2 --batch-size 10 --iters 4 --format csv |
		cut -d, -f1,2,3,5,10,11
done
head -c 3000 /dev/zero >cifar/data_batch_4.bin
roofline bench loader --data cifar

for n in 0 1 4; do
	roofline complexity -m resnet18 -b 32 --checkpoint $n --train --format csv --columns model training_flops recompute_flops saved_bytes peak_bytes
done

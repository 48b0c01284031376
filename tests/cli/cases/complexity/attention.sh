for how in naive sdpa composed; do
	roofline complexity -m tiny_lm --attention $how --train --format csv --columns model macs recompute_flops unfused_bytes saved_bytes
done

for how in full half; do
	roofline complexity -m tiny_lm --causal $how --format csv --columns model macs
done

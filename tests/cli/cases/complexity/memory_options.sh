columns="state_bytes gradients_bytes saved_bytes peak_bytes peak_phase"
for how in "--update foreach" "--update fused" "--accumulate 4" "--device cpu" "--precision amp"; do
	echo "$how"
	roofline complexity -m alexnet --train --optimizer adamw $how --format csv --columns $columns
done

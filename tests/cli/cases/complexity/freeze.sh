roofline complexity -m vgg11 --freeze features --train --format csv --columns model params trained fwd_flops dgrad_flops wgrad_flops gradients_bytes saved_bytes

roofline complexity --by layer --columns peak_bytes --train

roofline complexity --columns flopz

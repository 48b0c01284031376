roofline complexity -m alexnet --classes 10 --summary

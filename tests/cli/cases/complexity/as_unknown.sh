roofline complexity --as fvcoree

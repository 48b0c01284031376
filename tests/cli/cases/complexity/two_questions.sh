roofline complexity --fit 8GiB --as fvcore

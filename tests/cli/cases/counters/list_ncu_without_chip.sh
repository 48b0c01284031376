roofline counters list --ncu

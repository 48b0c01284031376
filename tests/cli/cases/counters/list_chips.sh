roofline counters list

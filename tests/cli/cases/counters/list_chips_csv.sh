roofline counters list --format csv | head -n 3

roofline peaks devices t4 --format csv

roofline peaks devices --format csv | wc -l

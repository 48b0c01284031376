roofline complexity --columns help --format csv

roofline help list

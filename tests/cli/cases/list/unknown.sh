roofline list engine

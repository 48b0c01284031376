roofline version

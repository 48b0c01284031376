roofline peaks devices h100

roofline peak measure

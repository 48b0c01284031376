roofline peaks measure --env "Lab CPU"

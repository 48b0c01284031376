roofline list --fromat json

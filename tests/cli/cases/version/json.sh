roofline version --format json

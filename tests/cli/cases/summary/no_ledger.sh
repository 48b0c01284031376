roofline summary

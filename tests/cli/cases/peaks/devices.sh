roofline peaks devices l4 'rtx 4090' 'epyc 9654'

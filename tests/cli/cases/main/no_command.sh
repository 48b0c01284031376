# The overview goes to standard error: nothing was asked for.
roofline

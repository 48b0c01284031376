# No title above options that are all hidden.
roofline help help

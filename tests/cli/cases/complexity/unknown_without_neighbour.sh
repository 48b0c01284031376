roofline complexity --models transmogrifier

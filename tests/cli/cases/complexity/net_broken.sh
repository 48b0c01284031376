echo '{' > broken.json
roofline complexity --net broken.json

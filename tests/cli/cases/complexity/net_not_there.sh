roofline complexity --net nowhere.json

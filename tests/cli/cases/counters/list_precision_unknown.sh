roofline counters list --chip GH100 --precision int8

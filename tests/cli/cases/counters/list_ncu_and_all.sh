roofline counters list --chip GH100 --ncu --all

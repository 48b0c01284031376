mkdir empty
RFL_CUPTI_PATH=empty roofline counters list --chip GH100 --all

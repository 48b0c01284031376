mkdir empty
RFL_CUPTI_PATH=empty roofline counters list --chip GX100

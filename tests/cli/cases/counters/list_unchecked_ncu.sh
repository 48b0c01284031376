mkdir empty
RFL_CUPTI_PATH=$PWD/empty roofline -q counters list --chip GB202 --ncu

mkdir empty
RFL_CUPTI_PATH=$PWD/empty roofline counters list --chip T4 --ncu --precision fp16

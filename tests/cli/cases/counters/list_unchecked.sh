# Without libcupti the formulas are all there is.
mkdir empty
RFL_CUPTI_PATH=$PWD/empty roofline counters list --chip h100 --precision bf16 | sed "s,$PWD,.,"

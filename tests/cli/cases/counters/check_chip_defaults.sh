export RFL_CUPTI_PATH=$(dirname "$ROOFLINE")/../tests/fakes
roofline counters check --chip GA100 --precision bf16 --format csv | cut -d, -f1-3

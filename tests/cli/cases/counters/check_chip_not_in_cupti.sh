# A chip that the program knows and this libcupti does not.
fakes=$(dirname "$ROOFLINE")/../tests/fakes
RFL_CUPTI_PATH=$fakes roofline counters check --chip GV11B 2>&1 | sed "s,in /.*/libcupti,in .../libcupti,"

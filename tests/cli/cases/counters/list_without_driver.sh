# CUPTI of CUDA 13.2 and later cannot be asked without a driver: another that can is looked for, and
# one that is named is refused with the reason. With a driver it serves.
fakes=$(dirname "$ROOFLINE")/../tests/fakes
[ -f "$fakes/cupti-13.2/libcupti.so.13" ] || { echo "no fake libraries" >&2; exit 77; }
mkdir toolkit && ln -s "$fakes" toolkit/lib64
asked() { roofline counters list --chip GH100 | grep -e 'asked of' -e 'were checked' -e 'does not have' | sed "s,[^ ]*/,,g"; }
LD_LIBRARY_PATH=$fakes/cupti-13.2 CUDA_HOME=$PWD/toolkit asked
RFL_CUPTI_PATH=$fakes/cupti-13.2 asked
LD_LIBRARY_PATH=$fakes RFL_CUPTI_PATH=$fakes/cupti-13.2 asked

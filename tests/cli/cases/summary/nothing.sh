# A ledger without a run, and a filter that nothing passes.
echo schema_version,run_id,config_hash,status,version >metrics.csv
roofline summary --metrics metrics.csv
cp "$RFL_TEST_DATA"/ledger/mac_mps.csv .
roofline -q summary --metrics mac_mps.csv --env mac_cpu

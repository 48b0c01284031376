# What is doubtful about the ceilings is said where they are used; of other environments, not.
cp "$RFL_TEST_DATA"/roofline/metrics.csv .
cat >peaks.json <<END
{"schema_version": "1.0", "environments": {"lab_cpu": {"kind": "cpu", "device": {"name": "CPU"},
 "compute": {"fp32.vector": {"status": "user", "value": 42, "spec": 420, "source": {"title": "a guess"}}},
 "memory": [{"level": "DRAM", "scope": "node", "gbs": {"status": "user", "value": 92, "source": {"title": "a guess"}}}]},
 "other": {"kind": "cpu", "device": {"name": "CPU"},
 "compute": {"fp32.vector": {"status": "user", "value": 42, "spec": 420, "source": {"title": "a guess"}}},
 "memory": [{"level": "DRAM", "scope": "node", "gbs": {"status": "user", "value": 92, "source": {"title": "a guess"}}}]}}}
END
roofline points --metrics metrics.csv --peaks peaks.json --env lab_cpu --output points.csv >/dev/null
roofline plot --points points.csv --peaks peaks.json --format svg

#!/usr/bin/env python3
"""What must hold of a log directory after a matrix is done: every run exactly once and ok, no line torn,
every row with its files, and the mirror the same rows.

usage: check_ledger.py LOG_DIR RUNS
"""
import csv
import json
import os
import sys

log_dir, runs = sys.argv[1], int(sys.argv[2])
path = os.path.join(log_dir, "metrics.csv")
with open(path, "rb") as f:
    assert f.read()[-1:] == b"\n", "the last line is not complete"
with open(path, newline="") as f:
    header, *rows = list(csv.reader(f, strict=True))
for row in rows:
    assert len(row) == len(header), f"{len(row)} fields instead of {len(header)}: {row}"
rows = [dict(zip(header, row)) for row in rows]
ok = [row["cell"] + " " + row["label"] for row in rows if row["status"] == "ok"]
assert len(set(ok)) == len(ok), "a run was done twice: " + str(sorted(ok))
assert len(ok) == runs, f"{len(ok)} ok rows instead of {runs}"
assert len({row["run_id"] for row in rows}) == len(rows), "two rows have one run_id"
assert not os.path.exists(os.path.join(log_dir, "metrics.torn.csv")), "a row was torn"

times = os.listdir(os.path.join(log_dir, "time"))
for row in rows:
    assert row["version"], f"a row is not complete: {row}"
    if row["status"] != "ok":
        continue
    steps = os.path.join(log_dir, "steps", row["run_id"] + ".csv")
    with open(steps, newline="") as f:
        n = len(list(csv.reader(f, strict=True))) - 1
    assert n == int(row["iters"]), f"{steps}: {n} steps instead of {row['iters']}"
    assert any(t.startswith(row["label"] + "_") for t in times), "no time log of " + row["label"]
with open(os.path.join(log_dir, "metrics.jsonl")) as f:
    mirror = [json.loads(line)["run_id"] for line in f]
assert mirror == [row["run_id"] for row in rows], "metrics.jsonl has other rows"
print(f"{len(ok)} runs, {len(rows)} rows")

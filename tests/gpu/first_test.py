#!/usr/bin/env python3
"""The verdicts of first.py on planted records: good ones pass, and each kind of bad one is found out."""
import csv
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import first

FWD, BWD = 1e12, 2e12  # of vit_b_16, planted
GIB = 2**30
ROWS = ("permission", "support", "counters core", "counters links", "counters flops")
RATIOS = {
    "fp32": {"dram_read_bytes": 1.003, "dram_write_bytes": 0.995, "flops.fp32": 1.0},
    "tf32": {"flops.tensor_tf32": 1.0},
    "bf16": {"flops.tensor_bf16": 1.0},
    "amp": {"flops.tensor_fp16": 1.0},
}
VIT = "vit_b_16_%s_bs32_run%d"
STEP = {"step_ms_mean": "50", "wall_s": "1", "iters": "20", "power_mean_w": "400"}
RUNS = {
    VIT % ("fp32", 1): dict(STEP, step_ms_mean="50"),
    VIT % ("fp32", 2): dict(STEP, step_ms_mean="50.2"),
    VIT % ("fp32", 3): STEP,
    VIT % ("bf16", 4): STEP,
    VIT % ("tf32", 5): STEP,
    VIT % ("fp16", 6): STEP,
    VIT % ("amp", 7): STEP,
    VIT % ("fp32", 9): STEP,
    VIT % ("fp32", 8): dict(STEP, wall_s="5", iters="100", energy_j_per_step="20.4"),
    "resnet50_fp32_bs64_run1": STEP,
    "resnet50_fp32_bs64_run2": STEP,
    "resnet50_fp32_bs64_run3": STEP,
    "resnet50_amp_bs64_run4": dict(
        STEP, counted_flops_per_step="1.1e12", model_flops_per_step="1e12"
    ),
    "mobilenet_v2_fp32_bs1_run1": dict(STEP, step_ms_mean="6", launch_gap="0.01"),
    "mobilenet_v2_fp32_bs1_run2": dict(STEP, step_ms_mean="2"),
}
ZERO = {"flops.tensor_" + t: 0 for t in ("bf16", "tf32", "fp64", "fp8")}
TOTALS = {
    VIT % ("fp32", 9): {"flops.fp32": 3.1e12},
    VIT % ("bf16", 4): {"flops.tensor_bf16": 3.1e12},
    VIT % ("tf32", 5): {"flops.tensor_tf32": 3.1e12},
    VIT % ("fp16", 6): {"flops.tensor_fp16": 3.1e12},
    VIT % ("amp", 7): dict(ZERO, **{"flops.tensor_fp16": 3.1e12}),
    "resnet50_fp32_bs64_run1": {"dram_bytes": 1.02e10},
    "resnet50_fp32_bs64_run2": {"dram_bytes": 1e10},
    "resnet50_fp32_bs64_run3": {"dram_bytes": 1.001e10, "pcie_read_bytes": 2e5},
}
PHASES = {VIT % ("fp32", 3): {"fwd": FWD * 1.02, "bwd": BWD * 1.03}}
NCU = {
    "add": {
        "dram__bytes_read.sum": GIB,
        "lts__t_bytes.sum": 2.8 * GIB,
        "lts__t_sectors_srcnode_gpc.sum": 2 * GIB / 32,
        "l1tex__t_bytes.sum": 2 * GIB,
    },
    "product": {
        "l1tex__t_bytes.sum": 1e9,
        "l1tex__m_xbar2l1tex_read_bytes_pipe_tma.sum": 9e9,
        "sm__ops_path_tensor_src_bf16_dst_fp32.sum": 2 * 8192**3,
    },
}
IDLE = "idle: kernels run for 4 ms of a step of 6 ms; no kernel runs for 33.3 % of it"


class Planted:
    """A directory of records in which everything is as expected, but for what a test changes."""

    def __init__(self, folder):
        self.folder = folder
        self.checks = {
            p: [[row, "ok", "", ""] for row in ROWS if p == "fp32"]
            + [["self-test " + q, "ok", "%.4f of the known value of x" % v, ""] for q, v in r.items()]
            for p, r in RATIOS.items()
        }
        self.runs = {k: dict(v) for k, v in RUNS.items()}
        self.totals = {k: dict(v) for k, v in TOTALS.items()}
        self.phases = {k: dict(v) for k, v in PHASES.items()}
        self.ncu = {k: dict(v) for k, v in NCU.items()}
        self.exits, self.seconds = {}, {"run-" + VIT % ("fp32", 3): 31}
        self.errors = {}
        self.idle = IDLE
        self.engine = [
            "ok       reference files, fp32, nchw",
            "ok       deterministic: the same loss twice (2.3)",
            "ok       --cuda-graph: the loss of ordinary steps (2.3, 2.3)",
            "ok       launch gap between 0 and 1",
            "record   power_mean_w 400",
            "ok       training: 97 % of the digits in three epochs",
        ]

    def write(self, name, text):
        path = os.path.join(self.folder, "records", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)

    def table(self, name, header, rows):
        path = os.path.join(self.folder, "records", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", newline="") as file:
            csv.writer(file).writerows([header] + rows)

    def command(self, name):
        self.write(name + ".exit", "%d\n" % self.exits.get(name, 0))
        self.write(name + ".seconds", "%g\n" % self.seconds.get(name, 20))
        self.write(name + ".err", self.errors.get(name, ""))

    def plant(self):
        for p, rows in self.checks.items():
            self.command("check-" + p)
            self.table("check-%s.out" % p, ["what", "state", "detail", "reason"], rows)
        columns = sorted({c for r in self.runs.values() for c in r})
        ledger = []
        for label, row in self.runs.items():
            self.command("run-" + label)
            if self.exits.get("run-" + label, 0) == 0:
                ledger.append(["gpu_" + label, "ok", "ok", ""] + [row.get(c, "") for c in columns])
        self.table("logs/metrics.csv", ["label", "status", "counters_status", "unwatched"] + columns, ledger)
        rows = []
        for label, totals in self.totals.items():
            rows += [
                ["gpu_" + label, "total", "step", "quantity", q, v, "the driver gave none" if v == "" else ""]
                for q, v in totals.items()
            ]
        for label, phases in self.phases.items():
            rows += [["gpu_" + label, "phase", p, "quantity", "flops.fp32", v, ""] for p, v in phases.items()]
        rows.append(["gpu_resnet50_fp32_bs64_run1", "kernel", "gemm", "quantity", "time_s", 0.03, ""])
        rows.append(["gpu_resnet50_fp32_bs64_run1", "kernel", "add", "quantity", "time_s", 0.015, ""])
        rows.append(["gpu_mobilenet_v2_fp32_bs1_run1", "", "", "note", "", "", self.idle])
        self.table(
            "logs/counters.csv",
            ["label", "range_kind", "range", "kind", "metric", "value", "reason"],
            rows,
        )
        batch = {"forward": {"flops": FWD}, "training": {"flops": FWD + BWD}}
        self.write("complexity-vit_b_16.out", json.dumps({"models": [{"batches": [batch]}]}))
        for kernel, metrics in self.ncu.items():
            self.command("ncu-" + kernel)
            head = ["ID"] + ["x%d" % i for i in range(10)]
            self.table(
                "ncu-%s.csv" % kernel,
                head + list(metrics),
                [[""] * len(head) + ["byte"] * len(metrics), ["0"] + ["x"] * 10 + list(metrics.values())],
            )
            path = os.path.join(self.folder, "records", "ncu-%s.csv" % kernel)
            with open(path) as file:
                text = file.read()
            self.write("ncu-%s.csv" % kernel, "==PROF== Connected to process 1\n" + text)
        self.command("engine")
        self.write("engine/summary.txt", "\n".join(self.engine) + "\n")


class Verdicts(unittest.TestCase):
    def judged(self, change=None):
        with tempfile.TemporaryDirectory() as folder:
            planted = Planted(folder)
            if change:
                change(planted)
            planted.plant()
            rows = list(first.verdicts(folder))
            first.main(folder)
            with open(os.path.join(folder, "results.csv")) as file:
                self.assertEqual(len(list(csv.DictReader(file))), len(rows))
        return {r["experiment"] + " " + r["hypothesis"]: r for r in rows}

    def test_good_records_pass(self):
        for name, r in self.judged().items():
            self.assertEqual(r["verdict"], "pass", "%s: %s %s" % (name, r["value"], r["note"]))

    def test_nothing_was_run(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual({r["verdict"] for r in first.verdicts(folder)}, {"not run"})
            self.assertFalse(first.main(folder))

    def test_bounds(self):
        expected, plausible = (0.9, 1.1), (0.5, 2)
        for value, verdict in (
            (0.9, "pass"),
            (1.1, "pass"),
            (1.11, "surprising"),
            (0.5, "surprising"),
            (0.49, "fail"),
            (2.1, "fail"),
            (float("nan"), "fail"),
        ):
            self.assertEqual(first.judge(value, expected, plausible), verdict, value)

    def expect(self, change, name, verdict, words=""):
        r = self.judged(change)[name]
        self.doubted.add(name if verdict in ("fail", "surprising") else "")
        self.assertEqual(r["verdict"], verdict, "%s: %s %s" % (name, r["value"], r["note"]))
        self.assertIn(words, r["note"])

    def test_the_page_has_the_ranges(self):
        def text(bounds):
            low, high = bounds
            return "%g" % low if low == high else ("%g to %g" % bounds).replace("e+0", "e")

        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "README.md")) as file:
            page = [line for line in file if line.startswith("| ")]
        for experiment, name, _, _, expected, plausible in first.hypotheses():
            end = "| %s | %s |\n" % (text(expected), text(plausible))
            self.assertTrue(
                [x for x in page if x.startswith("| %s | " % experiment) and x.endswith(end)],
                "%s, %s: no row of README.md ends with %s" % (experiment, name, end),
            )

    def test_bad_records_are_told(self):
        self.doubted = {""}

        def ratio(precision, quantity, value):
            def change(p):
                for row in p.checks[precision]:
                    if row[0] == "self-test " + quantity:
                        row[2] = "%.4f of the known value of x" % value

            return change

        def refused(row):
            def change(p):
                for r in p.checks["fp32"]:
                    if r[0] == row:
                        r[1:] = ["failed", "", "administrators only"]

            return change

        def put(what, *keys_and_value):
            *keys, last, value = keys_and_value

            def change(p):
                at = getattr(p, what)
                for key in keys:
                    at = at[key]
                at[last] = value

            return change

        def hang(name):
            return lambda p: (p.exits.__setitem__(name, 124), p.errors.__setitem__(name, "waiting\n"))

        flops, core = VIT % ("fp32", 3), VIT % ("fp32", 2)
        for row in ROWS:
            self.expect(refused(row), "check " + row, "fail", "administrators only")
        for p, quantities in RATIOS.items():
            for q in quantities:
                self.expect(ratio(p, q, 0), "check self-test " + q, "fail")
                self.expect(ratio(p, q, 1.0625), "check self-test " + q, "surprising")
        self.expect(put("phases", flops, "fwd", 0), "patched fp32 FLOPs of fwd", "fail")
        self.expect(put("phases", flops, "bwd", BWD * 1.3), "patched fp32 FLOPs of bwd", "surprising")
        self.expect(hang("run-" + flops), "patched fp32 FLOPs of fwd", "fail", "its time was up")
        self.expect(hang("run-" + flops), "patched step with CUPTI open", "pass")
        self.expect(put("seconds", "run-" + flops, 200), "patched cost of patching", "fail")
        self.expect(put("runs", core, "step_ms_mean", "53"), "patched step with CUPTI open", "surprising")
        self.expect(put("ncu", "add", "lts__t_sectors_srcnode_gpc.sum", GIB / 32), "ncu L2 from the GPCs", "fail")
        self.expect(put("ncu", "add", "lts__t_bytes.sum", 2 * GIB), "ncu L2 by all requests", "surprising")
        self.expect(put("ncu", "add", "dram__bytes_read.sum", "n/a"), "ncu DRAM read", "fail", "n/a")
        self.expect(put("ncu", "add", "l1tex__t_bytes.sum", 5 * GIB), "ncu L1 by tags", "fail")
        tma = "l1tex__m_xbar2l1tex_read_bytes_pipe_tma.sum"
        self.expect(put("ncu", "product", tma, 0), "ncu L1 by TMA", "fail")
        self.expect(
            put("ncu", "product", "sm__ops_path_tensor_src_bf16_dst_fp32.sum", 8192**3),
            "ncu matrix FLOPs",
            "fail",
        )
        for i, p in enumerate(("bf16", "tf32", "fp16", "amp")):
            label, q = VIT % (p, 4 + i), "flops.tensor_" + first.MATRIX[p]
            name = "matrix matrix FLOPs in " + p
            self.expect(put("totals", label, q, 0), name, "fail")
            self.expect(put("totals", label, q, 4.5e12), name, "surprising")
            self.expect(put("totals", label, q, ""), name, "fail", "the driver gave none")
        amp = VIT % ("amp", 7)
        self.expect(put("totals", amp, "flops.tensor_tf32", 1e12), "matrix other types in amp", "fail")
        self.expect(put("totals", amp, "flops.tensor_tf32", 1e11), "matrix other types in amp", "surprising")
        one, three = "resnet50_fp32_bs64_run1", "resnet50_fp32_bs64_run3"
        self.expect(put("runs", one, "step_ms_mean", "10"), "kernels time of kernels", "fail")
        self.expect(put("totals", one, "dram_bytes", 2e10), "kernels layers", "fail")
        self.expect(put("totals", three, "dram_bytes", 1.05e10), "kernels the same step again", "surprising")
        self.expect(put("totals", three, "pcie_read_bytes", ""), "kernels links", "fail", "gave none")
        self.expect(
            put("runs", "resnet50_amp_bs64_run4", "counted_flops_per_step", ""),
            "kernels FLOPs of a step in amp",
            "fail",
            "is empty",
        )
        small, graph = "mobilenet_v2_fp32_bs1_run1", "mobilenet_v2_fp32_bs1_run2"
        self.expect(put("runs", small, "launch_gap", "0.5"), "idle launch gap", "surprising")
        self.expect(lambda p: setattr(p, "idle", IDLE.replace("33.3", "0.0")), "idle idle within a step", "surprising")
        self.expect(lambda p: setattr(p, "idle", "kernels: 3"), "idle idle within a step", "fail", "no note")
        self.expect(put("runs", graph, "step_ms_mean", "9"), "idle idle with a graph", "fail")
        self.expect(put("runs", VIT % ("fp32", 8), "power_mean_w", "200"), "idle power", "fail")
        self.expect(put("totals", VIT % ("fp32", 9), "flops.fp32", 0), "patched fp32 FLOPs by default", "fail")
        for name, line in (
            ("reference files", "reference files, fp32, nhwc: 3 differ"),
            ("equal losses", "deterministic: 2.3 and 2.4"),
            ("equal losses", "--cuda-graph: 2.3 and 2.4"),
            ("training", "training: continued to 2.4 instead of 2.3"),
            ("all else", "launch gap or memory is not plausible"),
        ):
            self.expect(lambda p: p.engine.append("FAILED   " + line), "engine " + name, "fail", line)
        self.expect(hang("engine"), "engine all else", "fail", "its time was up")
        self.expect(hang("engine"), "engine reference files", "pass")
        for name in (*first.ENGINE, "all else"):
            self.expect(lambda p: p.exits.__setitem__("engine", 77), "engine " + name, "not run")
        late = lambda p: (hang("engine")(p), p.engine.pop())
        self.expect(late, "engine training", "fail", "its time was up")
        every = {e + " " + name for e, name, *_ in first.hypotheses()}
        self.assertEqual(every - self.doubted, set(), "nothing bad was planted for these")


if __name__ == "__main__":
    unittest.main()

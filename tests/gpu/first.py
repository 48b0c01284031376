#!/usr/bin/env python3
"""Verdicts on what first.sh has recorded so far: each hypothesis with its value, what was expected
of it, and pass, surprising or fail.

usage: first.py DIR      reads DIR/records, writes DIR/results.csv and DIR/summary.txt

A value within `expected` passes; one beyond `plausible` fails; between them it is surprising. A
record without the value fails with the reason; a hypothesis whose records are not there was not
run. Exit 0, or 1 when a hypothesis fails."""
import csv
import json
import math
import os
import sys

GIB = 2.0**30
PRODUCT = 2.0 * 8192**3  # FLOPs of the GEMM under ncu
# of CUDA's matrix units, by the precision of the run
MATRIX = {"bf16": "bf16", "tf32": "tf32", "fp16": "fp16", "amp": "fp16"}


class NotRun(Exception):
    """The records are not there."""


class Missing(Exception):
    """The records are there, and the value is not in them."""


class Records:
    """What first.sh left in a directory, read when it is asked for."""

    def __init__(self, folder):
        self.folder = folder

    def path(self, name):
        path = os.path.join(self.folder, name)
        if not os.path.exists(path):
            raise NotRun(name)
        return path

    def rows(self, name):
        with open(self.path(name), newline="", errors="replace") as file:
            return list(csv.DictReader(file))

    def exit(self, name):
        with open(self.path(name + ".exit")) as file:
            return int(file.read().split()[0])

    def seconds(self, name):
        with open(self.path(name + ".seconds")) as file:
            return float(file.read())

    def last_words(self, name):
        try:
            with open(self.path(name + ".err"), errors="replace") as file:
                lines = [line.strip() for line in file if line.strip()]
        except NotRun:
            lines = []
        code = self.exit(name)
        limit = " (its time was up)" if code in (124, 137) else ""
        return "exit %d%s%s" % (code, limit, ": " + lines[-1] if lines else "")

    def check(self, precision, row):
        """A row of `counters check`."""
        name = "check-" + precision
        for r in self.rows(name + ".out"):
            if r["what"] == row:
                return r
        raise Missing("no row '%s': %s" % (row, self.last_words(name)))

    def holds(self, precision, row):
        r = self.check(precision, row)
        if r["state"] != "ok":
            raise Missing(r["reason"] or r["detail"])
        return 1.0

    def self_test(self, precision, quantity):
        r = self.check(precision, "self-test " + quantity)
        if not r["detail"]:
            raise Missing(r["reason"])
        return float(r["detail"].split()[0])

    def ran(self, label):
        """The row of a run, which must have one."""
        self.exit("run-" + label)  # else it was not run
        for r in reversed(self.rows("logs/metrics.csv") if self.has("logs/metrics.csv") else []):
            if r["label"] == "gpu_" + label and r["status"] in ("ok", "nan"):
                return r
        raise Missing(self.last_words("run-" + label))

    def has(self, name):
        return os.path.exists(os.path.join(self.folder, name))

    def column(self, label, name):
        r = self.ran(label)
        if not r[name]:
            raise Missing("%s is empty: %s" % (name, r["counters_status"] or r["unwatched"]))
        return float(r[name])

    def captured(self, label):
        r = self.ran(label)
        if not self.has("logs/counters.csv"):
            raise Missing(r["counters_status"])
        return r, [x for x in self.rows("logs/counters.csv") if x["label"] == "gpu_" + label]

    def quantity(self, label, name, kind="total", of=None):
        """A quantity of the whole step, or summed over ranges of a kind (and name)."""
        row, rows = self.captured(label)
        found = [
            x
            for x in rows
            if x["kind"] == "quantity"
            and x["metric"] == name
            and x["range_kind"] == kind
            and of in (None, x["range"])
        ]
        values = [float(x["value"]) for x in found if x["value"]]
        if not values:
            reason = found[0]["reason"] if found else row["counters_status"]
            raise Missing("%s: %s" % (name, reason))
        return math.fsum(values)

    def note(self, label, begins):
        row, rows = self.captured(label)
        for x in rows:
            if x["kind"] == "note" and x["reason"].startswith(begins):
                return x["reason"]
        raise Missing("no note '%s...': %s" % (begins, row["counters_status"]))

    def idle_share(self, label):
        text = self.note(label, "idle: ")
        return float(text.split(" for ")[-1].split(" %")[0]) / 100

    def analytic(self, model, what):
        """FLOPs of the network's own count."""
        with open(self.path("complexity-%s.out" % model)) as file:
            batch = json.load(file)["models"][0]["batches"][0]
        if what == "fwd":
            return batch["forward"]["flops"]
        if what == "bwd":
            return batch["training"]["flops"] - batch["forward"]["flops"]
        return batch["training"]["flops"]

    def ncu(self, kernel, metric):
        """The sum over the kernels of one file of ncu, raw page in base units."""
        name = "ncu-" + kernel
        self.exit(name)
        table = []
        if self.has(name + ".csv"):
            with open(self.path(name + ".csv"), newline="", errors="replace") as file:
                table = [r for r in csv.reader(file) if len(r) > 10]
        if len(table) < 3 or metric not in table[0]:
            raise Missing("no %s: %s" % (metric, self.last_words(name)))
        at = table[0].index(metric)
        try:
            return math.fsum(float(r[at].replace(",", "")) for r in table[2:])
        except ValueError:
            raise Missing("%s is '%s'" % (metric, table[2][at]))


# The checks of engine.sh, by the first words of their lines in its summary.
ENGINE = {
    "reference files": ("reference files",),
    "equal losses": ("deterministic", "--cuda-graph"),
    "training": ("training",),
}


def engine(r, words):
    """1 if every check holds whose line begins with one of the words; without words: every other."""
    code = r.exit("engine")
    if code == 77:
        raise NotRun(r.last_words("engine"))
    others = tuple(w for all_words in ENGINE.values() for w in all_words)
    with open(r.path("engine/summary.txt")) as file:
        lines = [line.split(None, 1) for line in file if line[:6] in ("ok    ", "FAILED")]
    mine = [
        (state, text.strip())
        for state, text in lines
        if (text.startswith(words) if words else not text.startswith(others))
    ]
    failed = [text for state, text in mine if state == "FAILED"]
    if failed:
        raise Missing("; ".join(failed))
    if not mine or (not words and code in (124, 137)):
        raise Missing(r.last_words("engine"))
    return 1.0


def kernels_per_step(r, label):
    return r.quantity(label, "time_s", "kernel") / (1e-3 * r.column(label, "step_ms_mean"))


def power_by_energy(r, label):
    step_s = r.column(label, "wall_s") / r.column(label, "iters")
    return r.column(label, "energy_j_per_step") / step_s / r.column(label, "power_mean_w")


def other_types(r, label):
    others = [
        r.quantity(label, "flops.tensor_" + t) for t in ("bf16", "tf32", "fp64", "fp8")
    ]
    return math.fsum(others) / r.quantity(label, "flops.tensor_fp16")


def hypotheses():
    """experiment, name, what it says, value of records, expected, plausible"""
    one = ((1, 1), (1, 1))
    near = ((0.98, 1.02), (0.9, 1.1))
    vit = "vit_b_16_%s_bs32_run%d"
    plain, core, flops = vit % ("fp32", 1), vit % ("fp32", 2), vit % ("fp32", 3)
    layers, again = "resnet50_fp32_bs64_run1", "resnet50_fp32_bs64_run2"
    links = "resnet50_fp32_bs64_run3"
    small, graph = "mobilenet_v2_fp32_bs1_run1", "mobilenet_v2_fp32_bs1_run2"
    for row in ("permission", "support", "counters core", "counters links", "counters flops"):
        yield "check", row, "CUPTI takes it on this device", (
            lambda r, row=row: r.holds("fp32", row)
        ), *one
    for p, q in (
        ("fp32", "dram_read_bytes"),
        ("fp32", "dram_write_bytes"),
        ("tf32", "flops.tensor_tf32"),
        ("bf16", "flops.tensor_bf16"),
        ("amp", "flops.tensor_fp16"),
        ("fp32", "flops.fp32"),
    ):
        yield "check", "self-test " + q, "counted / known", (
            lambda r, p=p, q=q: r.self_test(p, q)
        ), *near
    for phase in ("fwd", "bwd"):
        yield "patched", "fp32 FLOPs of " + phase, (
            "instructions counted in libtorch's kernels / the network's own count"
        ), (
            lambda r, phase=phase: r.quantity(flops, "flops.fp32", "phase", phase)
            / r.analytic("vit_b_16", phase)
        ), (0.94, 1.1), (0.85, 1.5)
    yield "patched", "fp32 FLOPs by default", "the same of a step with all that is counted by default", (
        lambda r: r.quantity(vit % ("fp32", 9), "flops.fp32") / r.analytic("vit_b_16", "training")
    ), (0.94, 1.1), (0.85, 1.5)
    yield "patched", "cost of patching", "seconds that patched kernels add to a run", (
        lambda r: r.seconds("run-" + flops) - r.seconds("run-" + core)
    ), (-5, 60), (-30, 150)
    yield "patched", "step with CUPTI open", "step of a run with --counters / without", (
        lambda r: r.column(core, "step_ms_mean") / r.column(plain, "step_ms_mean")
    ), (0.98, 1.02), (0.9, 1.15)
    yield "ncu", "L2 from the GPCs", "an addition of 1 GiB moves 2 GiB", (
        lambda r: 32 * r.ncu("add", "lts__t_sectors_srcnode_gpc.sum") / (2 * GIB)
    ), (0.99, 1.02), (0.9, 1.1)
    yield "ncu", "L2 by all requests", "the same by lts__t_bytes: more where L2 has two halves", (
        lambda r: r.ncu("add", "lts__t_bytes.sum") / (2 * GIB)
    ), (1.05, 2.2), (0.99, 4)
    yield "ncu", "DRAM read", "an addition of 1 GiB reads 1 GiB", (
        lambda r: r.ncu("add", "dram__bytes_read.sum") / GIB
    ), (0.98, 1.03), (0.9, 1.2)
    yield "ncu", "L1 by tags", "an addition of 1 GiB asks for 2 GiB", (
        lambda r: r.ncu("add", "l1tex__t_bytes.sum") / (2 * GIB)
    ), (0.98, 1.05), (0.5, 2)
    yield "ncu", "L1 by TMA", "its share of what a GEMM asks of L1", (
        lambda r: r.ncu("product", "l1tex__m_xbar2l1tex_read_bytes_pipe_tma.sum")
        / (
            r.ncu("product", "l1tex__m_xbar2l1tex_read_bytes_pipe_tma.sum")
            + r.ncu("product", "l1tex__t_bytes.sum")
        )
    ), (0.5, 1), (0.05, 1)
    yield "ncu", "matrix FLOPs", "of a product of 8192 x 8192 x 8192 in bf16", (
        lambda r: r.ncu("product", "sm__ops_path_tensor_src_bf16_dst_fp32.sum") / PRODUCT
    ), (0.999, 1.01), (0.95, 1.1)
    for i, p in enumerate(("bf16", "tf32", "fp16", "amp")):
        yield "matrix", "matrix FLOPs in " + p, "counted / the network's own count", (
            lambda r, p=p, i=i: r.quantity(vit % (p, 4 + i), "flops.tensor_" + MATRIX[p])
            / r.analytic("vit_b_16", "training")
        ), (0.95, 1.2), (0.8, 2)
    yield "matrix", "other types in amp", "matrix FLOPs that are not fp16 / those in fp16", (
        lambda r: other_types(r, vit % ("amp", 7))
    ), (0, 0.01), (0, 0.2)
    yield "kernels", "time of kernels", "sum over a step's kernels / the timed step", (
        lambda r: kernels_per_step(r, layers)
    ), (0.7, 1.03), (0.2, 1.3)
    yield "kernels", "layers", "DRAM bytes of all layers / those of the step", (
        lambda r: r.quantity(layers, "dram_bytes") / r.quantity(again, "dram_bytes")
    ), (0.97, 1.1), (0.8, 1.5)
    yield "kernels", "the same step again", "DRAM bytes of two runs", (
        lambda r: r.quantity(links, "dram_bytes") / r.quantity(again, "dram_bytes")
    ), (0.98, 1.02), (0.9, 1.1)
    yield "kernels", "links", "bytes that PCI Express reads in a step of data on the device", (
        lambda r: r.quantity(links, "pcie_read_bytes")
    ), (0, 1e7), (0, 1e9)
    yield "kernels", "FLOPs of a step in amp", "all that was counted / the network's own", (
        lambda r: r.column("resnet50_amp_bs64_run4", "counted_flops_per_step")
        / r.column("resnet50_amp_bs64_run4", "model_flops_per_step")
    ), (0.95, 1.3), (0.8, 2)
    yield "idle", "launch gap", "between steps of a network of small kernels", (
        lambda r: r.column(small, "launch_gap")
    ), (0, 0.1), (0, 0.9)
    yield "idle", "idle within a step", "share in which no kernel runs", (
        lambda r: r.idle_share(small)
    ), (0.1, 0.95), (0, 1)
    yield "idle", "idle with a graph", "the same step replayed / launched", (
        lambda r: r.column(graph, "step_ms_mean") / r.column(small, "step_ms_mean")
    ), (0.1, 0.95), (0.05, 1.1)
    yield "idle", "power", "by the energy counter / by samples of the instant", (
        lambda r: power_by_energy(r, "vit_b_16_fp32_bs32_run8")
    ), (0.9, 1.1), (0.7, 1.4)
    for name, words in ENGINE.items():
        yield "engine", name, "engine.sh: every check holds", (
            lambda r, words=words: engine(r, words)
        ), *one
    yield "engine", "all else", "engine.sh ends, every other check holds", (
        lambda r: engine(r, None)
    ), *one


def judge(value, expected, plausible):
    if expected[0] <= value <= expected[1]:
        return "pass"
    return "surprising" if plausible[0] <= value <= plausible[1] else "fail"


def verdicts(folder):
    records = Records(os.path.join(folder, "records"))
    for experiment, name, says, value_of, expected, plausible in hypotheses():
        value, note = "", ""
        try:
            value = value_of(records)
            verdict = judge(value, expected, plausible)
        except NotRun as why:
            verdict, note = "not run", str(why)
        except (Missing, ValueError, KeyError, ZeroDivisionError) as why:
            verdict, note = "fail", "%s" % why
        yield {
            "experiment": experiment,
            "hypothesis": name,
            "verdict": verdict,
            "value": value if value == "" else "%.6g" % value,
            "expected_low": expected[0],
            "expected_high": expected[1],
            "plausible_low": plausible[0],
            "plausible_high": plausible[1],
            "says": says,
            "note": note,
        }


def main(folder):
    rows = list(verdicts(folder))
    with open(os.path.join(folder, "results.csv"), "w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    with open(os.path.join(folder, "summary.txt"), "w") as file:
        for r in rows:
            if r["verdict"] == "not run":
                continue
            found = r["note"] or "%s (expected %g to %g)" % (
                r["value"],
                r["expected_low"],
                r["expected_high"],
            )
            file.write(
                "%-10s %s, %s: %s: %s\n"
                % (r["verdict"], r["experiment"], r["hypothesis"], found, r["says"])
            )
        left = [r["hypothesis"] for r in rows if r["verdict"] == "not run"]
        records = Records(os.path.join(folder, "records"))
        if records.has("probe.exit") and records.exit("probe") == 77:
            file.write("%-10s counters: %s\n" % ("skipped", records.last_words("probe")))
        if left:
            file.write("%-10s %s\n" % ("not run", ", ".join(left)))
    return any(r["verdict"] == "fail" for r in rows)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print("usage: first.py DIR", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1]))

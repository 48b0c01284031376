#!/usr/bin/env python3
"""Two programs that do a step per line take turns, so that a drift of the machine meets both.

usage: lockstep.py STEPS WARMUP -- COMMAND... -- COMMAND...
A step has the times of its parts (forward; forward and backward; the step) in ms, their CPU times and a
loss; or one time only. Prints a line for each part: its name, the median of either program, the median over
pairs of steps of first / second, the quartiles of that ratio, and the median ratio of CPU times if there
are any. Both must have the same number of parameters, if they print it, and the same losses."""
import statistics
import subprocess
import sys

PARTS = ("forward", "+backward", "step")


class Side:
    def __init__(self, command):
        self.name = command[0]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def ready(self):
        line = self.process.stdout.readline().split()
        if line[:1] != ["ready"]:
            sys.exit("lockstep.py: %s did not start" % self.name)
        return int(line[2]) if len(line) > 2 else 0

    def step(self):
        self.process.stdin.write("step\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline().split()
        if len(line) not in (1, 2 * len(PARTS) + 1):
            sys.exit("lockstep.py: %s has ended" % self.name)
        return [float(x) for x in line]

    def close(self):
        self.process.stdin.close()
        return self.process.wait()


steps, warmup = int(sys.argv[1]), int(sys.argv[2])
split = sys.argv.index("--", 4)
sides = Side(sys.argv[4:split]), Side(sys.argv[split + 1:])
sizes = [side.ready() for side in sides]
if sizes[0] != sizes[1]:
    sys.exit("lockstep.py: %d and %d parameters" % tuple(sizes))
pairs = []
for i in range(warmup + steps):
    order = (0, 1) if i % 2 == 0 else (1, 0)  # neither side is always the one that comes after
    times = {k: sides[k].step() for k in order}
    losses = [times[k].pop() if len(times[k]) > 1 else 0 for k in (0, 1)]
    if abs(losses[0] - losses[1]) > 1e-2 * abs(losses[1]):  # false for nan
        sys.exit("lockstep.py: step %d: losses %g and %g" % (i, *losses))
    if i >= warmup:
        pairs.append((times[0], times[1]))
failed = [side.close() for side in sides]
with_cpu = len(pairs[0][0]) > 1
for part, name in enumerate(PARTS if with_cpu else PARTS[-1:]):
    ratios = sorted(a[part] / b[part] for a, b in pairs)
    cpu = statistics.median(a[part + len(PARTS)] / b[part + len(PARTS)] for a, b in pairs) if with_cpu else None
    print(name, "%.1f %.1f %.3f %.3f %.3f" % (
        statistics.median(a[part] for a, _ in pairs), statistics.median(b[part] for _, b in pairs),
        statistics.median(ratios), ratios[len(ratios) // 4], ratios[(3 * len(ratios)) // 4]),
        "%.3f" % cpu if with_cpu else "-")
sys.exit(any(failed))

#!/usr/bin/env python3
"""Two programs that do a step per line take turns, so that a drift of the machine meets both.

usage: lockstep.py STEPS WARMUP -- COMMAND... -- COMMAND...
Prints the median step of either in ms, the median over pairs of steps of first / second, and the
quartiles of that ratio."""
import statistics
import subprocess
import sys


class Side:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        if not self.process.stdout.readline().startswith("ready"):
            sys.exit("lockstep.py: %s did not start" % command[0])

    def step(self):
        self.process.stdin.write("step\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        return self.process.wait()


steps, warmup = int(sys.argv[1]), int(sys.argv[2])
split = sys.argv.index("--", 4)
sides = Side(sys.argv[4:split]), Side(sys.argv[split + 1:])
pairs = []
for i in range(warmup + steps):
    order = (0, 1) if i % 2 == 0 else (1, 0)  # neither side is always the one that comes after
    times = {k: sides[k].step() for k in order}
    if i >= warmup:
        pairs.append((times[0], times[1]))
failed = [side.close() for side in sides]
ratios = sorted(a / b for a, b in pairs)
print("%.1f %.1f %.3f %.3f %.3f" % (
    statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs),
    statistics.median(ratios), ratios[len(ratios) // 4], ratios[(3 * len(ratios)) // 4]))
sys.exit(any(failed))

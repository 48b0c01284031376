#!/usr/bin/env python3
"""Which tests were skipped, and why: ctest itself keeps that to its log.

usage: skipped.py TESTS.xml      of ctest --output-junit
"""
import sys
import xml.etree.ElementTree

try:
    tests = xml.etree.ElementTree.parse(sys.argv[1]).getroot()
except (OSError, xml.etree.ElementTree.ParseError) as error:
    sys.exit("which tests were skipped is not known: %s" % error)
reasons = {}
for case in tests.iter("testcase"):
    if case.find("skipped") is None:
        continue
    lines = [line.strip() for line in (case.findtext("system-out") or "").splitlines() if line.strip()]
    reason = lines[-1] if lines else "no reason was printed"
    for begin in ("skipped:", "skipped"):
        reason = reason.removeprefix(begin).strip()
    reasons.setdefault(reason, []).append(case.get("name"))
if reasons:
    print("Skipped, and why:")
for reason, names in reasons.items():
    print("  %s: %s" % (", ".join(names), reason))

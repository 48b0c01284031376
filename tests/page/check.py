#!/usr/bin/env python3
"""The interactive roofline of report.html in headless Chromium: what it draws, its controls by mouse
and keyboard, sorting, export, hostile and missing data.

usage: check.py ROOFLINE [PICTURES]      PICTURES: a directory for screenshots
exit: 0, 1 with the failed checks, 77 without Chromium
"""
import base64
import hashlib
import json
import math
import os
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as xml

sys.dont_write_bytecode = True
import browser
from browser import check

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def equal(what, a, b):
    check(what, a == b, f"{a!r} is not {b!r}")


def source(name):
    with open(os.path.join(TREE, "report", name), encoding="utf-8") as f:
        return f.read()


def policy():
    """That of the report: nothing may be loaded, and only page.js may run."""
    digest = base64.b64encode(hashlib.sha256(source("page.js").encode()).digest()).decode()
    return (f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
            "img-src data: blob:")


TABLE = [["resnet50", 29.2e12, 1200], ["<b>x</b>", None, 12], ["alexnet", 420e9, 300], ["vgg16", 1.5e12, -4]]


def page(data):
    """A report with one table. `data`: a document, or text."""
    text = data if isinstance(data, str) else json.dumps(data)
    escape = lambda cell: cell.replace("&", "&amp;").replace("<", "&lt;")
    cell = lambda c: f"<td>{escape(c)}</td>" if isinstance(c, str) else "<td>-</td>" if c is None else \
        f'<td data-value="{c}">{c:.3g}</td>'
    rows = "".join(f'<tr data-point="{i}">' + "".join(map(cell, row)) + "</tr>" for i, row in enumerate(TABLE))
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy()}">
<link rel="icon" href="data:,"><meta name="viewport" content="width=device-width"><title>Report</title>
<style>{source("page.css")}</style></head><body><h1>Report</h1><p>Text with a <a href="#x">link</a>.</p>
<div id="roofline"></div><h2>Throughput</h2>
<table class="data" id="t"><thead><tr><th>Model</th><th>Rate</th><th>Step (ms)</th></tr></thead>
<tbody>{rows}</tbody></table>
<script type="application/json" id="roofline-data">{text.replace("<", chr(92) + "u003c")}</script>
<script>{source("page.js")}</script></body></html>"""


WORDS = {"neither": {"adjective": "below 30 % of the roof", "means": "neither ceiling explains the time"},
         "above": {"adjective": "above the roof", "means": ""}}


with open(os.path.join(TREE, "roofline/verdict.h"), encoding="utf-8") as header:
    LIMITS = {name: float(value) for name, value in re.findall(r"#define RFL_VERDICT_(\w+)\s+([\d.]+)", header.read())}
ABOVE = 1 + math.sqrt(2) * LIMITS["LEAST_SPREAD"]  # of a point and a ceiling without a recorded spread


def verdicts(p):
    """The verdicts that the report sends, under the bandwidth of each level."""
    def of(ai, gbps):
        roof = min(ai * gbps, p["peak_gflops"])
        share, lower = p["attained_gflops"] / roof, "memory" if roof < p["peak_gflops"] else "compute"
        return {"roof": lower, "share": share, "over": share > 1 + LIMITS["VISIBLE"],
                "bound": "above" if share > ABOVE else "neither" if 100 * share < LIMITS["EXPLAINS"] else lower}

    rates = {"DRAM": ("ai", p.get("peak_gbps")), "L2": ("ai_l2", 300), "L1": ("ai_l1", 900)}
    known = {level: (p.get(key), gbps) for level, (key, gbps) in rates.items()}
    return {level: of(ai, gbps) for level, (ai, gbps) in known.items()
            if isinstance(ai, float) and ai > 0 and gbps and p.get("peak_gflops")}


def document(points, peaks=None):
    points = [{**p, "verdicts": verdicts(p)} if p and isinstance(p, dict) else p for p in points]
    return {"schema": "roofline.page/1", "points": points, "bounds": WORDS, "peaks": peaks, "files": {
        "points": {"name": "points.csv", "hash": "12"}, "peaks": {"name": "peaks.json", "hash": "34"}}}


def point(**values):
    """A point of an environment with 400 GFLOP/s and 100 GB/s."""
    p = {"env": "lab", "model": "net", "precision": "fp32", "batch": 8, "mode": "train", "ai": 10.0,
         "attained_gflops": 200.0, "compute_key": "fp32.vector", "peak_gflops": 400.0,
         "peak_gflops_status": "measured", "peak_gbps": 100.0, "peak_gbps_status": "measured",
         "bound": "compute", "step_s": 0.1, "headroom_s": 0.05, "bytes_source": "unfused"}
    p.update(values)
    return p


def peak(value, **more):
    return {"status": "measured", "value": value,
            "method": {"tool": "roofline", "kernel": "loop", "measured_at": "2026-01-01T00:00:00Z"},
            "stats": {"n": 3, "median": value * .95, "min": value * .9, "max": value}, **more}


PEAKS = {"schema_version": "1.0", "environments": {"lab": {
    "kind": "gpu", "device": {"name": "a card"},
    "compute": {"fp32.vector": peak(400, spec=500), "fp16.matrix": peak(1600),
                "fp64.vector": {"status": "unknown", "value": None, "reason": "not measured"}},
    "memory": [{"level": "DRAM", "scope": "device", "gbs": peak(100, spec=120)},
               {"level": "L2", "scope": "device", "gbs": peak(300)},
               {"level": "L1", "scope": "device", "gbs": peak(900)}]}}}


def kernels():
    """Kernels with shares of the time and intensities at three levels, of two precisions."""
    return [point(part=f"kernel_{i}", part_kind="kernel", launches=10 * i + 1, ai=2.0 ** i,
                  ai_l2=1.5 ** i, ai_l1=1.2 ** i, attained_gflops=60.0 + 10 * i,
                  attained_gflops_lo=40.0 + 10 * i, attained_gflops_hi=90.0 + 10 * i,
                  time_share=0.3 / (i + 1), bound="memory" if i < 2 else "compute",
                  precision="amp" if i % 2 else "fp32", peak_gflops=1600.0 if i % 2 else 400.0,
                  compute_key="fp16.matrix" if i % 2 else "fp32.vector") for i in range(6)]


def marks(b, level="DRAM"):
    return b.js(f"[...document.querySelectorAll('.mark.{level}')].filter(m => !m.matches('.dim') &&"
                " m.dataset.id).map(m => Number(m.dataset.id.slice(1))).sort((a, b) => a - b)")


def text(b, selector):
    return b.js(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent).join('|')")


def choose(b, name, value):
    b.js(f"(() => {{ const c = document.getElementById('rl-{name}'); c.value = '{value}';"
         " c.dispatchEvent(new Event(c.tagName === 'SELECT' ? 'change' : 'input')) })()")


def focus_on(b, selector, limit=60):
    """Press Tab until an element has the focus."""
    b.js("document.activeElement?.blur()")
    for _ in range(limit):
        b.key("Tab")
        if b.js(f"document.activeElement.matches({json.dumps(selector)})"):
            return True
    return False


def check_drawing(b, data):
    b.load(page(data))
    equal("all points are drawn", marks(b), [0, 1, 2, 3])
    equal("a panel for each environment", text(b, ".plot .title"), "lab_cpu|lab_gpu")
    roofs = text(b, ".roof-label")
    for words in ("memory 92 GB/s", "FP32 vector 420 GFLOP/s, as given", "compute 30 TFLOP/s"):
        check("roofs in engineering units", words in roofs, words, roofs)
    # the pixels of a decade from two ticks, then the distance of a point from its roof and its knee
    dx, dy, x, y = b.js("""(() => { const at = e => { const r = e.getBoundingClientRect();
            return [(r.left + r.right) / 2, (r.top + r.bottom) / 2] };
        const tick = t => at([...document.querySelectorAll('.tick')].find(e => e.textContent === t));
        const mark = at(document.querySelector('.mark[data-id="p0"]'));
        const knee = at(document.querySelector('.knee'));
        return [tick('100')[0] - tick('10')[0], tick('100 G')[1] - tick('1 T')[1],
            mark[0] - knee[0], mark[1] - knee[1]] })()""")
    p = data["points"][0]
    check("a point is at its rate", abs(y / dy - math.log10(420 / p["attained_gflops"])) < 0.01, y, dy)
    check("and at its intensity", abs(x / dx - math.log10(p["ai"] / (420 / 92))) < 0.01, x, dx)
    equal("limiters", text(b, "#roofline td:nth-child(6)"), "neither ceiling explains the time "
          "(nearest: DRAM)|compute|above the roof|above the roof")
    equal("ridge points", text(b, ".tick").count("ridge"), 2)
    check("hollow marks of other traffic", b.js("document.querySelectorAll('.hollow').length") > 3)
    check("points above the roof are marked", b.js("document.querySelectorAll('.mark.above').length") > 2)
    check("the tooltip is hidden", b.js("document.querySelector('.tip').hidden"))
    b.mouse('.mark[data-id="p1"]')
    tip = text(b, ".tip")
    for words in ("mobilenet_v2", "3.37", "71.3 GFLOP/s", "23 %", "neither ceiling", "100 ms", "C 98"):
        check("the tooltip", words in tip, words, tip)


def check_choices(b):
    b.load(page(document(kernels(), PEAKS)))
    equal("kernels", marks(b), list(range(6)))
    check("bands", b.js("document.querySelectorAll('.roof .band').length") == 3)
    check("error bars", len(b.js("document.querySelector('.error').getAttribute('d')")) > 20)
    check("area by share of the time", b.js("""(() => { const w = i => document.querySelector(
        `.mark[data-id="p${i}"]`).getBoundingClientRect().width; return w(0) / w(2) })()""") > 1.4)
    choose(b, "precision", "amp")
    equal("precision", marks(b), [1, 3, 5])
    check("only its ceiling is drawn", "FP32" not in text(b, ".roof-label"), text(b, ".roof-label"))
    choose(b, "level", "L2")
    equal("level", [marks(b, "L2"), marks(b)], [[1, 3, 5], []])
    check("the roof of the level", "L2 300 GB/s" in text(b, ".roof-label"))
    row = lambda: text(b, "#roofline tr[data-point='1'] td")
    check("percent of the roof of the level", "|16 %|neither ceiling explains the time (nearest: L2)|"
          in row(), row()) # 70 of 1.5 x 300
    choose(b, "level", "all")
    check("with all, of the level that allows least", "|35 %|DRAM|" in row(), row()) # 70 of 2 x 100
    equal("all levels", [marks(b, l) for l in ("L1", "L2", "DRAM")], [[1, 3, 5]] * 3)
    choose(b, "precision", "")
    choose(b, "level", "DRAM")
    choose(b, "top", "2")
    equal("the largest shares of the time", marks(b), [0, 1])
    check("the slider says what it ranks by", "share of the time: 2 of 6" in text(b, ".control"),
          text(b, ".control"))
    choose(b, "find", "KERNEL_1 ")
    equal("search", marks(b), [1])
    link = b.js("document.querySelector('.controls a').getAttribute('href')")
    equal("the address is that of the link", b.js("location.hash"), link)
    b.load(page(document(kernels(), PEAKS)), link)
    equal("the link restores the view", [marks(b), b.js("document.getElementById('rl-find').value")],
          [[1], "KERNEL_1 "])
    b.load(page(document(kernels(), PEAKS)), "#roofline?env=none&top=x&level=L9&only=p99&bad=%")
    equal("an invalid link is ignored", b.complaints(), [])


def check_batches(b):
    points = [point(model=m, batch=n, ai=10.0 + n, attained_gflops=100.0 + 9 * n + 50 * (m == "b"))
              for n in (8, 1, 4, 2) for m in "ab"]
    b.load(page(document(points, PEAKS)))
    x = b.js("""[...document.querySelectorAll('g:not(.key) > .batches')].map(e => e.getAttribute('d')
            .slice(1).split('L').map(at => Number(at.split(' ')[0])))""")
    check("a line for each model, in order of the batches", len(x) == 2 and
          all(len(line) == 4 and line == sorted(line) for line in x), x)
    fills = b.js("[1, 2, 4, 8].map(n => getComputedStyle("
                 "document.querySelector(`.mark[data-id=\"p${2 * [8, 1, 4, 2].indexOf(n)}\"]`)).fill)")
    light = [sum(map(int, re.findall(r"\d+", fill)[:3])) for fill in fills]
    equal("batches are a ramp from light to dark", light, sorted(light, reverse=True))
    check("of distinct colours", len(set(fills)) == 4, fills)
    b.js("document.getElementById('rl-batches').click()")
    equal("no lines", b.js("document.querySelectorAll('.batches').length"), 0)


def check_isolation(b):
    b.load(page(document(kernels(), PEAKS)))
    b.mouse('.mark[data-id="p3"]', click=True)
    equal("a click isolates a point", marks(b), [3])
    b.mouse('.mark[data-id="p3"]', click=True)
    equal("again, and it is released", marks(b), list(range(6)))
    b.mouse('#roofline tr[data-point="4"] td:nth-child(3)', click=True)
    equal("a click on a row", marks(b), [4])
    b.key("Escape")
    equal("Escape", marks(b), list(range(6)))
    b.mouse('#t tr[data-point="2"]', click=True)
    equal("a row of the report", [marks(b), b.js("document.querySelector('#t tr.chosen').cells[0].textContent")],
          [[2], "alexnet"])
    b.key("Escape")
    check("Tab reaches the plot", focus_on(b, ".roof[tabindex='0']"))
    check("the first roof has a tooltip", "100 GB/s" in text(b, ".tip"), text(b, ".tip"))
    b.key("Enter")
    equal("Enter isolates the points that a roof limits", marks(b), [0, 1, 3])
    check("the focus stays", b.js("document.activeElement.matches('.roof[aria-pressed=true]')"))
    b.key("End")
    last = b.js("document.activeElement.dataset.id.slice(1)")
    check("End goes to a point", last is not None)
    check("with a tooltip", f"kernel_{last}" in text(b, ".tip"), text(b, ".tip"))
    b.key(" ")
    equal("Space isolates it", marks(b), [int(last)])
    b.key("Escape")
    equal("Escape shows all", marks(b), list(range(6)))


def check_sorting(b):
    b.load(page(document([])))
    column = lambda: b.js("[...document.querySelectorAll('#t tbody tr')].map(r => r.cells[0].textContent)")
    check("Tab reaches a heading", focus_on(b, "#t th:nth-child(2) button"))
    b.key("Enter")
    equal("rates by size, unknown last", column(), ["alexnet", "vgg16", "resnet50", "<b>x</b>"])
    b.key(" ")
    equal("and down, unknown last", column(), ["resnet50", "vgg16", "alexnet", "<b>x</b>"])
    equal("aria-sort", b.js("[...document.querySelectorAll('#t thead th')].map(h => h.ariaSort)"),
          ["none", "descending", "none"])
    b.key("Tab")
    b.key("Enter")
    equal("numbers", column(), ["vgg16", "<b>x</b>", "alexnet", "resnet50"])
    b.mouse("#t th:nth-child(1) button", click=True)
    equal("text", column(), ["<b>x</b>", "alexnet", "resnet50", "vgg16"])


def check_redraw(b):
    picture = os.path.join(b.folder.name, "roofline.svg")
    with open(picture, "w", encoding="utf-8") as f:
        f.write(b.js("saved[0].text()"))
    drawn = subprocess.run([sys.argv[1], "plot", "--from", picture, "--format", "record", "--output-dir",
                            b.folder.name], capture_output=True, text=True)
    check("plot --from redraws the saved SVG", drawn.returncode == 0, drawn.stderr)


def check_export(b, redraw=False):
    b.js("""saved = []; URL.createObjectURL = (old => blob => { saved.push(blob); return old.call(URL, blob)
        })(URL.createObjectURL); HTMLAnchorElement.prototype.click = function () { names.push(this.download) };
        names = []""")
    b.js("[...document.querySelectorAll('.controls button')].find(e => e.textContent === 'Save SVG').click()")
    root = xml.fromstring(b.js("saved[0].text()"))
    texts = "|".join("".join(e.itertext()) for e in root.iter("{http://www.w3.org/2000/svg}text"))
    check("the SVG has its texts", "GFLOP/s" in texts and "FLOP per byte" in texts)
    check("the SVG has its styles", all(e.get("class") is None for e in root.iter()) and
          len({e.get("fill") for e in root.iter()}) > 3)
    if redraw:
        check_redraw(b)
    b.js("[...document.querySelectorAll('.controls button')].find(e => e.textContent === 'Save PNG').click()")
    png = base64.b64decode(b.js("""new Promise(done => { const wait = () => names.length < 2 ?
        setTimeout(wait, 20) : saved[2].arrayBuffer().then(a => done(btoa(
        Array.from(new Uint8Array(a), c => String.fromCharCode(c)).join('')))); wait() })"""))
    size = b.js("(v => [v.width, v.height])(document.querySelector('.plot').viewBox.baseVal)")
    equal("the PNG has twice the size", list(struct.unpack(">II", png[16:24])),
          [int(2 * size[0]), int(2 * size[1])])
    equal("names of the files", b.js("names"), ["roofline.svg", "roofline.png"])
    return png


def check_hostile(b):
    evil = '<img src=x onerror="window.hit=1">'
    names = [evil, "'\"&<script>hit=1</script>", "]]>\u0000\u0007\u202e\ud800x", "x" * 200, "模型 نموذج"]
    points = [point(env=n, model=n, part=n, precision=n, verdict=n, compute_key=n, variant=n)
              for n in names]
    points.append(point(env="__proto__", model="constructor", precision="toString"))
    peaks = {"environments": {evil: PEAKS["environments"]["lab"]}}
    b.load(page(document(points, peaks)))
    equal("hostile names are all drawn", marks(b), list(range(6)))
    equal("and nothing of them is HTML", b.js("[document.querySelectorAll('img').length, window.hit]"),
          [0, None])
    check("and shown as they are", evil in text(b, "#roofline td"))
    b.mouse('.mark[data-id="p0"]')
    check("nothing is wider than the window", b.js("document.documentElement.scrollWidth") <= 1100)
    check("in the tooltip too", evil in text(b, ".tip b"), text(b, ".tip"))
    check_export(b)
    equal("no complaints", b.complaints(), [])


def check_missing(b):
    gaps = point(**{key: None for key in ("model", "precision", "batch", "peak_gflops", "peak_gbps",
                                          "compute_key", "bound", "step_s", "headroom_s")})
    cases = {
        "no points": (document([], PEAKS), 0),
        "no points, no peaks": (document([]), 0),
        "one point": (document([point()], PEAKS), 1),
        "no peaks": (document([point(), point(ai=1.0)]), 2),
        "null in all but the axes": (document([gaps]), 1),
        "without an intensity or rate": (document([point(ai=None), point(attained_gflops=0.0),
                                                   point(ai="NaN"), point(ai=-1.0), {}, None, 7]), 0),
        "short peaks": (document([point()], {"lab": {"peak_gflops": 400, "peak_gbps": 100}}), 1),
        "points far outside": (document([point(ai=1e-12, attained_gflops=1e-9), point(ai=1e15),
                                         point(attained_gflops=1e12)], PEAKS), 3),
        "peaks of the wrong form": (document([point()], {"environments": {"lab": 3}}), 1),
        "an empty document": ({}, 0),
    }
    for name, (data, n) in cases.items():
        b.load(page(data))
        equal(name, len(marks(b)), n)
        check(name + ": numbers", not re.search(r"NaN|Infinity|undefined", b.js(
            "document.querySelector('#roofline').outerHTML")))
        equal(name + ": complaints", b.complaints(), [])
        if name == "points far outside":
            equal("arrows at the edges", b.js("document.querySelectorAll('.plot > g:not(.key) .edge').length"), 3)
    b.load(page("{\"points\": [NaN"))
    check("broken data is reported", "cannot be read" in text(b, "#roofline [role=alert]"))


def check_many(b):
    points = [point(model=f"model{i % 12}", batch=2 ** (i % 10), ai=0.1 * 1.002 ** i, ai_fused=0.2 * 1.002 ** i,
                    attained_gflops=1 + i % 390, attained_gflops_lo=(1 + i % 390) * .9,
                    attained_gflops_hi=(1 + i % 390) * 1.1, headroom_s=i * 1e-3) for i in range(5000)]
    b.load(page(document(points, PEAKS)))
    equal("5,000 points", len(marks(b)), 5000)
    times = sorted(b.js("""Array.from({ length: 5 }, () => { const c = document.getElementById('rl-batches'),
        t = performance.now(); c.click(); return performance.now() - t })"""))
    print(f"5,000 points are drawn in {times[2]:.0f} ms")
    shapes = b.js("""new Set([...document.querySelectorAll('.key path.mark')].map(p =>
        p.getAttribute('d').replace(/[\\d.]+ [\\d.]+/, ''))).size""")
    check("twelve models have shapes of their own, or numbers", shapes +
          b.js("document.querySelectorAll('.key .letter').length") >= 12, shapes)
    equal("5,000 points: complaints", b.complaints(), [])


CONTRAST = """(() => { const probe = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const rgba = c => { probe.clearRect(0, 0, 1, 1); probe.fillStyle = c; probe.fillRect(0, 0, 1, 1);
        return [...probe.getImageData(0, 0, 1, 1).data] };
    const light = c => rgba(c).slice(0, 3).map(v => v / 255).map(v => v <= .04045 ? v / 12.92 :
        ((v + .055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [.2126, .7152, .0722][i], 0);
    let worst = [99];
    for (const e of document.querySelectorAll('body *')) {
        if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !e.getClientRects().length ||
            e.tagName === 'SCRIPT') continue;
        const style = getComputedStyle(e), inPlot = e.closest('.plot');
        let ground = e;
        while (ground && rgba(getComputedStyle(ground).backgroundColor)[3] < 255) ground = ground.parentElement;
        const a = light(inPlot ? style.fill : style.color), back = inPlot ?
            getComputedStyle(document.querySelector('.paper')).fill : getComputedStyle(ground).backgroundColor;
        const b = light(back), ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
        if (ratio < worst[0]) worst = [ratio, e.tagName + '.' + e.className, e.textContent.slice(0, 40)];
    }
    return worst })()"""


def check_appearance(b, data, pictures):
    for scheme in ("light", "dark"):
        for name, width, doc in (("wide", 1100, data), ("narrow", 400, data),
                                 ("kernels", 1100, document(kernels(), PEAKS))):
            b.media(scheme)
            b.size(width, 900)
            b.load(page(doc), "#roofline?level=all" if name == "kernels" else "")
            worst = b.js(CONTRAST)
            check(f"contrast of text, {scheme}, {name}", worst[0] >= 4.5, worst)
            check(f"{name}: nothing is wider than the window",
                  b.js("document.documentElement.scrollWidth") <= width)
            if pictures:
                with open(f"{pictures}/{name}_{scheme}.png", "wb") as f:
                    f.write(base64.b64decode(b.picture()))
    b.media(scheme="dark", media="print")
    equal("print: white paper, no controls", b.js("""[getComputedStyle(document.body).backgroundColor,
        getComputedStyle(document.querySelector('.controls')).display]"""), ["rgb(255, 255, 255)", "none"])
    if pictures:
        with open(pictures + "/print.pdf", "wb") as f:
            f.write(base64.b64decode(b.call("Page.printToPDF")["data"]))
    b.media()
    b.size(1100, 900)


def check_report(b, folder):
    """Tables of many columns fit a window of 1,200 pixels: nothing must be scrolled to."""
    with open(folder + "/metrics.csv", encoding="utf-8") as f:
        head, *rows = f.read().splitlines()
    runs, points, report = (os.path.join(b.folder.name, name) for name in ("m.csv", "p.csv", "r.html"))
    with open(runs, "w", encoding="utf-8") as f:
        f.write(head + ",flags,workers,warmup,optimizer_kernels\n" + "".join(
            f"{row},unstable drift few_steps not_warm loader_bound,{i},{i},{'foreach' if i % 2 else 'fused'}\n"
            for i, row in enumerate(rows)))
    peaks = ["--peaks", folder + "/peaks.json"]
    for command in (["points", "--metrics", runs, *peaks, "--env", "lab_cpu", "--output", points],
                    ["report", "--metrics", runs, "--points", points, *peaks, "--output", report]):
        subprocess.run([sys.argv[1], *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    with open(report, encoding="utf-8") as f:
        text = f.read()
    b.size(1200, 900)
    b.load(text)
    equal("tables that are wider than the page", b.js("""[...document.querySelectorAll('.scroll')]
        .filter(e => e.scrollWidth > e.clientWidth).map(e => e.closest('figure')?.textContent.slice(0, 40))"""), [])
    b.size(1100, 900)


def check_source():
    code = source("page.js")
    for word in ("eval", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "fetch(",
                 "XMLHttpRequest", "import(", "new Function", "WebSocket", "sendBeacon"):
        check("page.js does not use " + word, word not in code)
    addresses = re.findall(r"https?://[^'\")\s]+", code + source("page.css"))
    equal("no address but the namespace of SVG", addresses, ["http://www.w3.org/2000/svg"])
    check("page.css loads nothing", not re.search(r"url\(|@import", source("page.css")))
    check("nothing moves", not re.search(r"transition|animation|@keyframes", source("page.css")))
    check("page.js can be embedded", "</script" not in code and "<!--" not in code)


def main():
    program = browser.find()
    pictures = sys.argv[2] if len(sys.argv) > 2 else None
    check_source()
    if not program:
        print("skipped: no Chromium; install the package chromium")
        return 1 if browser.failures else 77
    here = os.path.join(TREE, "tests/data/roofline")
    with open(here + "/peaks.json", encoding="utf-8") as f:
        peaks = json.load(f)
    made = subprocess.run([sys.argv[1], "points", "--metrics", here + "/metrics.csv", "--peaks",
                           here + "/peaks.json", "--format", "json", "--skip-missing"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    data = document(json.loads(made.stdout), peaks)
    b = browser.Browser(program)
    try:
        b.size(1100, 900)
        b.media()
        for run in (lambda: check_drawing(b, data), lambda: check_choices(b),
                    lambda: check_batches(b), lambda: check_isolation(b), lambda: check_export(b, True), lambda: check_sorting(b)):
            run()
            equal("no complaints", b.complaints(), [])
        check_report(b, here)
        check_hostile(b)
        check_missing(b)
        check_many(b)
        check_appearance(b, data, pictures)
    finally:
        b.close()
    return 1 if browser.failures else 0


sys.exit(main())

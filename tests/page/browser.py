"""A headless Chromium, controlled through a pipe (the DevTools protocol), for check.py and ../site."""
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile

KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "End": 35, "Home": 36, "ArrowLeft": 37,
        "ArrowRight": 39}


failures = 0


def check(what, is_ok, *seen):
    global failures
    if not is_ok:
        failures += 1
        print("FAILED:", what, *seen)


def find():
    """The path of a Chromium, or None."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for path in map(shutil.which, names) if path), None)


class Browser:
    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory(prefix="rfl_page_", ignore_cleanup_errors=True)
        self.n, self.pending, self.events, self.session = 0, b"", [], None
        theirs_in, self.out = os.pipe()
        self.back, theirs_out = os.pipe()
        # Chromium reads descriptor 3 and writes descriptor 4; keep ours away from these
        pair = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (theirs_in, theirs_out)]
        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--no-first-run", "--disable-dev-shm-usage", "--remote-debugging-pipe",
             "--user-data-dir=" + self.folder.name + "/profile"],
            preexec_fn=lambda: [os.dup2(fd, i + 3) for i, fd in enumerate(pair)],
            close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for fd in (theirs_in, theirs_out, *pair):
            os.close(fd)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def receive(self, timeout=60):
        while b"\0" not in self.pending:
            if not select.select([self.back], [], [], timeout)[0]:
                raise TimeoutError("Chromium does not answer")
            data = os.read(self.back, 1 << 20)
            if not data:
                raise ConnectionError("Chromium has ended")
            self.pending += data
        message, self.pending = self.pending.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.n += 1
        message = {"id": self.n, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        while True:
            answer = self.receive()
            if answer.get("id") == self.n:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def load(self, page, address=""):
        """Load a page from its text; the events of earlier pages are forgotten."""
        path = self.folder.name + "/page.html"
        with open(path, "w", encoding="utf-8") as f:
            f.write(page)
        self.open(path, address)

    def open(self, path, address="", within=None):
        """Load a file. `within`: what it may load, by default only itself."""
        self.within = "file://" + (within or path)
        for url in ("about:blank", "file://" + path + address):
            self.events.clear()
            self.call("Page.navigate", url=url)
            self.wait()

    def wait(self):
        """Wait until a page is loaded."""
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self.receive())

    def js(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def key(self, name):
        text = {"Enter": "\r", " ": " "}.get(name, "")
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name.strip() or "Space",
                      windowsVirtualKeyCode=KEYS[name], text=text if kind == "keyDown" else "")

    def type(self, text):
        self.call("Input.insertText", text=text)

    def mouse(self, selector, click=False, at="[.5, .5]"):
        """Move to an element, by default to its middle, and click it."""
        x, y = self.js(f"""(() => {{ const e = document.querySelector({json.dumps(selector)});
            e.scrollIntoView({{ block: 'center' }}); const r = e.getBoundingClientRect(), at = {at};
            return [r.left + at[0] * r.width, r.top + at[1] * r.height] }})()""")
        for kind in ["mouseMoved"] + (["mousePressed", "mouseReleased"] if click else []):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, clickCount=1,
                      button="left" if kind != "mouseMoved" else "none")

    def media(self, scheme="light", media=""):
        self.call("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def picture(self):
        return self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]

    def complaints(self):
        """Errors and warnings of the console, and requests that leave the page."""
        found = []
        for e in self.events:
            method, p = e.get("method"), e.get("params", {})
            if method == "Runtime.exceptionThrown":
                details = p["exceptionDetails"]
                found.append(details.get("exception", {}).get("description", details["text"]))
            elif method == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning", "assert"):
                found.append(str(p["args"]))
            elif method == "Log.entryAdded":
                found.append(p["entry"]["text"])
            elif method == "Network.requestWillBeSent":
                url = p["request"]["url"].split("#")[0]
                if not url.startswith(("blob:", "data:", self.within)):
                    found.append("request of " + url)
        return found

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (OSError, RuntimeError):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.folder.cleanup()

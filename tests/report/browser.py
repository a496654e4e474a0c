"""Drives Debian's Chromium over a pipe by the DevTools protocol (https://chromedevtools.github.io/devtools-protocol/),
with nothing but Python's library. No port is opened."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium-headless-shell", "chromium")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe")


def find_browser():
    """The path of a Chromium, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """A browser with a profile of its own. What the page says and asks for is collected: `errors`, `requests`."""

    def __init__(self, path):
        self.profile = tempfile.mkdtemp(prefix="etc-report-")
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()

        def commands_and_answers():  # the browser reads from descriptor 3 and writes to 4
            os.dup2(os.dup2(to_read, 30), 3)
            os.dup2(os.dup2(to_write, 40), 4)

        self.process = subprocess.Popen([path, *FLAGS, f"--user-data-dir={self.profile}", "about:blank"], close_fds=False,
                                        preexec_fn=commands_and_answers, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.buffer, self.number = b"", 0
        self.errors, self.requests, self.events = [], [], []
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.page(domain + ".enable")

    def close(self):
        try:
            self.call("Browser.close")
            self.process.wait(10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # --- the protocol: JSON texts that end with a NUL ---

    def receive(self, timeout=30):
        end = time.monotonic() + timeout
        while b"\0" not in self.buffer:
            if not select.select([self.read_end], [], [], max(0, end - time.monotonic()))[0]:
                raise RuntimeError("the browser does not answer")
            piece = os.read(self.read_end, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has ended")
            self.buffer += piece
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, session=None, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == message["id"]:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.note(answer)

    def page(self, method, **params):
        return self.call(method, self.session, **params)

    def note(self, event):
        name, params = event.get("method"), event.get("params", {})
        self.events.append(name)
        if name == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif name == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(" ".join(str(a.get("value")) for a in params["args"]))
        elif name == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif name == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    # --- what a user does ---

    def open(self, url):
        self.events, self.errors, self.requests = [], [], []
        self.page("Page.navigate", url=url)
        end = time.monotonic() + 30
        while "Page.loadEventFired" not in self.events:
            self.note(self.receive(max(0, end - time.monotonic())))

    def js(self, expression):
        """The value of an expression; promises are awaited."""
        result = self.page("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails'].get('exception', {}).get('description')}")
        return result["result"].get("value")

    def frame(self):
        """Waits until what was asked for is drawn."""
        self.js("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")

    def size(self, width, height, phone=False, ratio=1):
        self.page("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=ratio, mobile=phone)
        self.page("Emulation.setTouchEmulationEnabled", enabled=phone)

    def prefer(self, scheme):
        self.page("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.page("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)
        self.frame()

    def tap(self, x, y):
        self.page("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.page("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.frame()

    def wheel(self, x, y, dy, ctrl=False):
        self.page("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=dy, modifiers=2 if ctrl else 0)
        self.frame()

    def key(self, key):
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        self.page("Input.dispatchKeyEvent", type="keyDown", key=key, code=key if len(key) > 1 else "", **text)
        self.page("Input.dispatchKeyEvent", type="keyUp", key=key, code=key if len(key) > 1 else "")
        self.frame()

    def type(self, text):
        self.page("Input.insertText", text=text)
        self.frame()

    def centre(self, selector):
        """The middle of an element that can be seen."""
        return self.js(f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
                       " return [b.left + b.width / 2, b.top + b.height / 2]; })()")

    def press(self, selector):
        """Clicks the middle of an element, after it was scrolled into view."""
        self.js(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'nearest', inline: 'nearest'}})")
        self.click(*self.centre(selector))

    def screenshot(self, path):
        data = self.page("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))

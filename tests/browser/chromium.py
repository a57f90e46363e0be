"""A page in headless Chromium, driven by its debugging protocol over a pipe: nothing to install beside Chromium."""
import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
import urllib.parse

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--remote-debugging-pipe")
PATIENCE = 30  # Seconds.


def find_chromium():
    """The program's path; None if there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Chromium:
    """One browser with one page. What the page asks of the network and complains about is kept."""

    def __init__(self, program, profile):
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        # Descriptors 3 and 4 are what Chromium looks at; here they may be anything.
        high = [fcntl.fcntl(end, fcntl.F_DUPFD, 16) for end in (to_browser, from_browser)]

        def take_ends():
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self._process = subprocess.Popen([program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
                                         preexec_fn=take_ends, pass_fds=(3, 4), stdin=subprocess.DEVNULL,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for end in (to_browser, from_browser, *high):
            os.close(end)
        self._buffer, self._calls, self._session, self._loaded = b"", 0, None, False
        self.urls, self.complaints = [], []
        self._attach()

    def _attach(self):
        targets = self._call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        self._session = self._call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")

    def close(self):
        os.close(self._out)
        os.close(self._in)
        self._process.kill()
        self._process.wait()

    def forget(self):
        """Leaves the page, and what was kept of it."""
        self.show("about:blank")
        self.urls, self.complaints = [], []

    def _call(self, method, **params):
        self._calls += 1
        message = {"id": self._calls, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._next(deadline)
            if answer.get("id") == self._calls:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self._note(answer)

    def _next(self, deadline):
        while b"\0" not in self._buffer:
            left = deadline - time.monotonic()
            readable, _, _ = select.select([self._in], [], [], max(0, left))
            assert readable, "Chromium does not answer"
            piece = os.read(self._in, 1 << 16)
            assert piece, "Chromium has ended"
            self._buffer += piece
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def _note(self, event):
        method, params = event.get("method"), event.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Network.requestWillBeSent":
            self.urls.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(params["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])

    def show(self, url, width=1000, height=900, dark=False, scale=1):
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                   mobile=width < 500)
        theme = "dark" if dark else "light"
        self._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        self._loaded = False
        self._call("Page.navigate", url=url)
        deadline = time.monotonic() + PATIENCE
        while not self._loaded:
            self._note(self._next(deadline))

    def evaluate(self, expression):
        """The value of a JavaScript expression in the page, awaited if it is a promise."""
        done = self._call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait_until(self, condition, seconds=20):
        """Looks at a JavaScript expression until it is true; the text of the page tells why it never was."""
        look = (f"new Promise(done => {{ const end = Date.now() + {seconds * 1000}; const look = () => "
                f"{{ if ({condition}) done(true); else if (Date.now() > end) done(false); "
                "else setTimeout(look, 20); }; look(); })")
        assert self.evaluate(look), f"never: {condition}\n{self.text()}"

    def text(self):
        return self.evaluate("document.body.innerText")

    def text_of(self, element):
        return self.evaluate(f"document.getElementById({json.dumps(element)}).textContent")

    def hosts(self):
        """Of everything that the page asked for."""
        return {urllib.parse.urlsplit(url).netloc.rpartition("@")[2] for url in self.urls if url.startswith("http")}

    def screenshot(self, path):
        """The whole page, as PNG."""
        size = self.evaluate("({width: innerWidth, height: document.documentElement.scrollHeight})")
        clip = {"x": 0, "y": 0, "scale": 1, **size}
        picture = self._call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))

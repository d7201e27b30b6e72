# SPDX-License-Identifier: MIT
"""A headless Chromium that is controlled over two pipes: opens a page and reports
what it requests and what it writes to its console."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

LIMIT_S = 60  # of one command, on a busy machine
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update", "--disable-extensions",
         "--remote-debugging-pipe")


def find():
    """The program, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """As long as the with-block. `requests`: the addresses that pages asked for;
    `messages`: what they wrote to their consoles, with errors and violations."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs, self.to = os.pipe()
        self.back, theirs_back = os.pipe()
        # The browser expects the descriptors 3 and 4.
        script = f'exec 3<&{theirs} 4>&{theirs_back}; exec "$@"'
        self.process = subprocess.Popen(
            ["bash", "-c", script, "bash", find(), *FLAGS, f"--user-data-dir={self.folder.name}"],
            pass_fds=(theirs, theirs_back), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(theirs)
        os.close(theirs_back)
        self.held, self.number, self.events = b"", 0, []
        self.requests, self.messages, self.session = [], [], None
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self.session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self(f"{domain}.enable")
        return self

    def __exit__(self, *what):
        os.close(self.to)
        os.close(self.back)
        self.process.kill()
        self.process.wait(LIMIT_S)
        self.folder.cleanup()

    def next(self):
        """The next message of the browser."""
        end = time.monotonic() + LIMIT_S
        while b"\0" not in self.held:
            if not select.select([self.back], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser is silent")
            more = os.read(self.back, 1 << 16)
            if not more:
                raise EOFError("the browser has ended")
            self.held += more
        first, self.held = self.held.split(b"\0", 1)
        return json.loads(first)

    def note(self, event):
        name, about = event.get("method"), event.get("params", {})
        if name == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif name in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
            self.messages.append(about)
        elif name == "Log.entryAdded":
            self.messages.append(about["entry"])
        self.events.append(name)

    def __call__(self, method, **params):
        """Run a command and return its result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while (got := self.next()).get("id") != self.number:
            self.note(got)
        if "error" in got:
            raise RuntimeError(f"{method}: {got['error']}")
        return got["result"]

    def open(self, url, width=1400, height=900, scheme="light"):
        """Open a page and wait until it is loaded."""
        self("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events.clear()
        self("Page.navigate", url=url)
        while "Page.loadEventFired" not in self.events:
            self.note(self.next())

    def run(self, script):
        """The value of an expression in the page."""
        got = self("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in got:
            raise RuntimeError(got["exceptionDetails"])
        return got["result"].get("value")

    def picture(self, path, **clip):
        """Write a PNG of the whole page."""
        got = self("Page.captureScreenshot", captureBeyondViewport=True, **clip)
        with open(path, "wb") as out:
            out.write(base64.b64decode(got["data"]))

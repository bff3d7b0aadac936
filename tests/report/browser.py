"""A headless Chromium that tests drive as a person would: by mouse, keys, and looking."""

import json
import os
import shutil
import subprocess
from base64 import b64decode

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


def find_chromium():
    """The path of a Chromium; without one, the test that needs it is skipped."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"needs a browser, and none of {', '.join(NAMES)} is on the PATH; on Debian: apt install chromium")
    return found


class Browser:
    """One page in a Chromium, spoken to in the DevTools protocol: JSON with a null byte after each message."""

    def __init__(self, profile):
        command = [find_chromium(), *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        there = 'exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null'  # the pipe is file descriptors 3 and 4
        self.process = subprocess.Popen(["sh", "-c", there, *command], **pipes)
        self.count, self.left, self.session = 0, b"", {}
        self.requests, self.complaints, self.loaded = [], [], False
        target = self.ask("Target.getTargets")["targetInfos"][0]["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self.session = {"sessionId": attached["sessionId"]}
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def close(self):
        self.session = {}
        self.ask("Browser.close")
        self.process.communicate(timeout=30)

    def ask(self, method, **params):
        """The answer to a command; what happens meanwhile is noted."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": params, **self.session}
        self.process.stdin.write(json.dumps(message).encode() + b"\0")
        self.process.stdin.flush()
        while (heard := self._hear()).get("id") != self.count:
            pass
        assert "error" not in heard, heard
        return heard["result"]

    def _hear(self):
        while b"\0" not in self.left:
            more = os.read(self.process.stdout.fileno(), 2**20)
            assert more, "Chromium has ended"
            self.left += more
        message, _, self.left = self.left.partition(b"\0")
        heard = json.loads(message)
        match heard.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(heard["params"]["request"]["url"])
            case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded":
                self.complaints.append(heard["params"])
            case "Page.loadEventFired":
                self.loaded = True
        return heard

    def look(self, width, height, dark=False, phone=False):
        """Be a screen of that size."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, path):
        """Load a file, to the end."""
        self.requests, self.complaints, self.loaded = [], [], False
        self.ask("Page.navigate", url=path.absolute().as_uri())
        while not self.loaded:
            self._hear()

    def tell(self, expression):
        """The value of a JavaScript expression."""
        given = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in given, given
        return given["result"].get("value")

    def place(self, selector):
        """Where the first such element is on the screen, once it is there: left, top, width and height."""
        return self.tell(
            f"(e => {{ e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect(); "
            f"return [b.left, b.top, b.width, b.height] }})(document.querySelector({json.dumps(selector)}))"
        )

    def mouse(self, kind, x, y, **options):
        """Move, press or release the mouse."""
        self.ask("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, **options)

    def drag(self, start, *way):
        """Press the mouse at a point, move it along a way, and release it there."""
        held = {"button": "left", "buttons": 1, "clickCount": 1}
        self.mouse("Moved", *start)
        self.mouse("Pressed", *start, **held)
        for point in way:
            self.mouse("Moved", *point, **held)
        self.mouse("Released", *way[-1], button="left", clickCount=1)

    def key(self, name, code=0):
        """Press a key that is not a letter."""
        for kind in ("rawKeyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code)

    def screenshot(self, path, whole=False):
        """What is seen, as a PNG file."""
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(b64decode(shot["data"]))

"""A headless Chromium, driven over a pipe by its own protocol. The standard library is enough.

Everything waits for what is to happen, not for a time; the one limit is far off, so that a slow machine is no failure.
"""

import json
import os
import shutil
import subprocess
import tempfile
import threading

NAMES = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]
PATIENCE = 600  # seconds


class Browser:
    def __init__(self):
        path = next(filter(None, map(shutil.which, NAMES)), None)
        if path is None:
            raise RuntimeError("no Chromium: scripts/setup test gets one")
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, ours_to = os.pipe()
        ours_from, from_browser = os.pipe()
        options = ["--headless", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage",
                   "--disable-background-networking", f"--user-data-dir={self.folder.name}"]
        if os.geteuid() == 0:
            options.append("--no-sandbox")  # which root cannot have
        # The browser reads at 3 and writes at 4.
        command = f'exec 3<&{to_browser} 4>&{from_browser}; exec "$0" "$@"'
        self.process = subprocess.Popen(["bash", "-c", command, path, *options, "about:blank"], pass_fds=(to_browser, from_browser),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.to, self.back = os.fdopen(ours_to, "wb"), os.fdopen(ours_from, "rb")
        self.ids, self.replies, self.events = 0, {}, []
        self.came = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        buffer = b""
        while part := self.back.read1(1 << 16):
            *messages, buffer = (buffer + part).split(b"\0")
            with self.came:
                for message in map(json.loads, messages):
                    if "id" in message:
                        self.replies[message["id"]] = message
                    else:
                        self.events.append(message)
                self.came.notify_all()
        with self.came:
            self.replies = None
            self.came.notify_all()

    def send(self, method, session=None, **parameters):
        with self.came:
            self.ids += 1
            number = self.ids
        message = {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        self.to.write(json.dumps(message).encode() + b"\0")
        self.to.flush()
        with self.came:
            if not self.came.wait_for(lambda: self.replies is None or number in self.replies, PATIENCE):
                raise TimeoutError(method)
            if self.replies is None:
                raise RuntimeError("the browser ended")
            reply = self.replies.pop(number)
        if "error" in reply:
            raise RuntimeError(f"{method}: {reply['error']}")
        return reply["result"]

    def open(self, url):
        return Page(self, url)

    def close(self):
        try:
            self.send("Browser.close")
            self.process.wait(PATIENCE)
        except (OSError, RuntimeError):
            self.process.kill()
        self.folder.cleanup()


class Page:
    def __init__(self, browser, url):
        self.browser = browser
        self.target = browser.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.send("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self.send(f"{domain}.enable")
        self.go(url)

    def send(self, method, **parameters):
        return self.browser.send(method, self.session, **parameters)

    def go(self, url):
        self.send("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, expression):
        """The value of an expression, awaited."""
        result = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True,
                           allowUnsafeEvalBlockedByCSP=False)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, condition):
        """Until a condition holds; the page looks each time it may have changed."""
        return self.run(f"""new Promise((done, failed) => {{
            const look = () => {{ try {{ if ({condition}) done(true); else setTimeout(look, 50); }} catch (error) {{ failed(error); }} }};
            look();
        }})""")

    def picture(self, path):
        import base64
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def complaints(self):
        """What the page's console and the browser's log say against it."""
        with self.browser.came:
            events = [event for event in self.browser.events if event.get("sessionId") == self.session]
        found = [event["params"]["entry"]["text"] for event in events if event["method"] == "Log.entryAdded"]
        found += [str(event["params"]) for event in events if event["method"] == "Runtime.exceptionThrown"]
        return found

    def requests(self):
        """The addresses that the page itself fetched; its worker's are seen by the server."""
        with self.browser.came:
            events = [event for event in self.browser.events if event.get("sessionId") == self.session]
        return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]

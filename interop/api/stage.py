"""A server of its own: the real binary on a free port, with data in a folder that is thrown away."""

import json
import os
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

BINARY = os.environ.get("ENGINE") or os.environ.get("STAMPEDE") or "bin/stampede"
ADMIN_KEY = "the-admin-key-of-this-test"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Stage:
    """A running server; nothing of the developer's own settings reaches it."""

    def __init__(self, **settings):
        self.folder = tempfile.TemporaryDirectory(prefix="stampede-api-")
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.environment = {
            "PATH": os.environ["PATH"],
            "DATA_DIR": f"{self.folder.name}/data",
            "PORT": str(port),
            "ADMIN_KEY": ADMIN_KEY,
            "WORKER_COUNT": "1",
            # Schemathesis sends hundreds of wrong keys a minute, to see that each is answered with 401.
            "RATE_LIMIT_FAILURES": "0",
            **settings,
        }

    def __enter__(self):
        self.log = open(f"{self.folder.name}/log", "w+")
        self.process = subprocess.Popen([BINARY, "serve"], env=self.environment, stdout=self.log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/ready", timeout=5):
                    return self
            except (OSError, urllib.error.URLError) as error:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"the server did not start: {error}\n{self.said()}") from None
            time.sleep(0.1)

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self.folder.cleanup()

    def said(self):
        """What the server has written to its log."""
        with open(f"{self.folder.name}/log") as log:
            return log.read()

    def key(self, role, user):
        """A new key."""
        environment = {name: value for name, value in self.environment.items() if name != "ADMIN_KEY"}
        command = [BINARY, "token", "create", "--role", role, "--user", user]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()

    def ask(self, method, path, body=None, key=ADMIN_KEY):
        """One request with JSON; returns the answer's JSON."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data=data, headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or "null")

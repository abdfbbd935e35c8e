"""The receivers of docs/webhooks.md, in Python and Node, with the official libraries of Standard Webhooks.

Each is run as it stands on the page, and gets messages of a real server: a test, an order, and messages during a rotation of
the secret. A message that is replayed later, changed or signed with another secret must be refused.
"""

import http.client
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from stage import Stage, free_port

HERE = Path(__file__).parent
PAGE = (HERE.parent.parent / "docs" / "webhooks.md").read_text()
KINDS = {"batch.created", "tickets.completed", "batch.completed"}


def block(language):
    """The first block of code in a language."""
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found, f"docs/webhooks.md has no {language}"
    return found.group(1)


class Receiver:
    """A receiver of the page, as a process of its own."""

    def __init__(self, command, port, secret, folder):
        self.port, self.log = port, Path(folder) / f"receiver-{port}-{time.monotonic_ns()}"
        environment = {"PATH": os.environ["PATH"], "PORT": str(port), "WEBHOOK_SECRET": secret}
        errors = self.log.with_suffix(".errors")
        self.process = subprocess.Popen(command, env=environment, stdout=self.log.open("w"), stderr=errors.open("w"))
        until(lambda: self.answers(), "the receiver does not listen")

    def answers(self):
        try:
            return self.post(b"{}", {}) in (400, 401)
        except OSError:
            assert self.process.poll() is None, self.log.with_suffix(".errors").read_text()
            return False

    def post(self, body, headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request("POST", "/", body, headers)
        return connection.getresponse().status

    def kinds(self):
        return [line.split()[0] for line in self.log.read_text().splitlines() if line]

    def stop(self):
        self.process.terminate()
        self.process.wait()


def until(check, reason, seconds=60):
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, reason
        time.sleep(0.05)


def delivered(stage, webhook, count):
    """Waits until so many deliveries have ended; all must have been accepted."""
    def ended():
        page = stage.ask("GET", f"/api/webhooks/{webhook}/deliveries?limit=1000")["deliveries"]
        for delivery in page:
            assert delivery["lastError"] is None, delivery
        return sum(delivery["state"] == "delivered" for delivery in page) >= count
    until(ended, "the messages were not accepted")


def check(stage, name, command):
    port = free_port()
    made = stage.ask("POST", "/api/webhooks", {"url": f"http://127.0.0.1:{port}/hook"})
    webhook, secret = made["id"], made["secret"]
    receiver = Receiver(command, port, secret, stage.folder.name)
    stage.ask("POST", f"/api/webhooks/{webhook}/test", {})
    delivered(stage, webhook, 1)
    event = stage.ask("POST", "/api/events", {"name": "Night"})["id"]
    stage.ask("POST", "/api/tickets", {"target": event, "name": "Guest", "quantity": 3})
    until(lambda: KINDS <= set(receiver.kinds()), f"{name}: only {receiver.kinds()}")

    # During a rotation, receivers with either secret accept the messages.
    rotated = stage.ask("POST", f"/api/webhooks/{webhook}/rotate", {"graceSeconds": 3600})["secret"]
    assert rotated != secret
    for known in (secret, rotated):
        receiver.stop()
        receiver = Receiver(command, port, known, stage.folder.name)
        sent = stage.ask("POST", f"/api/webhooks/{webhook}/test", {})["id"]
        path = f"/api/webhooks/{webhook}/deliveries/{sent}"
        until(lambda: stage.ask("GET", path)["state"] == "delivered", f"{name}: a secret was refused")
        assert receiver.kinds() == ["webhook.test"], receiver.kinds()

    refused(receiver, rotated, name)
    receiver.stop()
    stage.ask("DELETE", f"/api/webhooks/{webhook}")
    print(f"webhooks, {name}: an order, a rotation and forgeries: fine")


def refused(receiver, secret, name):
    """A message that is old, changed or signed by somebody else is refused."""
    from datetime import datetime, timedelta, timezone

    from standardwebhooks import Webhook

    now, body = datetime.now(tz=timezone.utc), '{"type":"webhook.test","id":"x"}'

    def headers(at, signer=secret, text=body):
        stamp = str(int(at.timestamp()))
        return {
            "webhook-id": "x", "webhook-timestamp": stamp, "content-type": "application/json",
            "webhook-signature": Webhook(signer).sign("x", at, text),
        }

    assert receiver.post(body, headers(now)) == 204, name
    assert receiver.post(body, headers(now - timedelta(hours=1))) == 400, f"{name}: a replayed message"
    assert receiver.post(body, headers(now, "whsec_" + "A" * 44)) == 400, f"{name}: another secret"
    assert receiver.post(body + " ", headers(now)) == 400, f"{name}: a changed body"
    newer = {**headers(now - timedelta(hours=1)), "webhook-timestamp": str(int(now.timestamp()))}
    assert receiver.post(body, newer) == 400, f"{name}: a changed time"


def main():
    folder = Path(sys.argv[1])
    python, node = folder / "receiver.py", folder / "receiver.mjs"
    python.write_text(block("python"))
    node.write_text(block("js"))
    with Stage(WEBHOOK_ALLOW_PRIVATE="127.0.0.1") as stage:
        check(stage, "Python", [sys.executable, str(python)])
        check(stage, "Node", ["node", str(node)])


main()

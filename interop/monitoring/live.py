"""A real Prometheus and a real Alertmanager with the shipped configuration, on free ports of this machine.

    exporter ◀─scrape, with the key── Prometheus ─▶ Alertmanager ─▶ recorder: webhook, Slack, mail

Changed in the copy: addresses, what must be filled in, and the times (`for`, intervals), so that an alert takes seconds.

1. The exporter tells three dead letters: StampedeDeadLetters arrives once by each way, and nothing else does.
2. Meanwhile every query of every dashboard has an answer.
3. The letters are gone: the end of the alert arrives.
4. Redis is down and no node leads: StampedePartDown arrives, and its consequence StampedeNoLeader does not.
"""

import contextlib
import json
import logging
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

from kit import TABLE, Wrong, program

KEY, TOKEN, PASSWORD = "the-key-of-a-viewer", "the-token-of-the-webhook", "the-password-of-the-mail-server"
SECONDS = 30
# It says that passwords should not travel without TLS. Here they do, within the machine.
logging.getLogger("mail.log").setLevel(logging.CRITICAL)
warnings.filterwarnings("ignore", module="aiosmtpd")


def play(folder):
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        exporter = stack.enter_context(Server(Exporter, text=TABLE.read_text(), refused=0))
        recorder = stack.enter_context(Server(Recorder, got=[]))
        mail = stack.enter_context(Mail(recorder.got))
        ports = {name: free_port() for name in ("prometheus", "alertmanager")}
        copy = configured(folder, scratch, exporter, recorder, mail, ports)
        servers = [stack.enter_context(started(name, ports[name], copy, scratch)) for name in ports]
        prometheus = f"http://127.0.0.1:{ports['prometheus']}"

        until(lambda: query(prometheus, 'sum(up{job="stampede"})') == [1.0], "Prometheus does not read the exporter", servers)
        if exporter.refused:
            raise Wrong("Prometheus did not send the key of its file")
        exporter.text = changed(TABLE.read_text(), 'stampede_dead_letters{queue="tickets"}', 3)
        until(lambda: len(ways(recorder, "firing")) == 3, "StampedeDeadLetters did not arrive by webhook, Slack and mail", servers, recorder)
        answers = dashboards(folder, prometheus)

        exporter.text = TABLE.read_text()
        until(lambda: len(ways(recorder, "resolved")) == 3, "the end of StampedeDeadLetters did not arrive", servers, recorder)
        exactly(recorder, [("StampedeDeadLetters", "tickets", status, way) for status in ("firing", "resolved") for way in ("mail", "slack", "webhook")])

        recorder.got.clear()
        exporter.text = changed(changed(TABLE.read_text(), 'stampede_up{part="redis"}', 0), "stampede_leader", 0)
        until(lambda: query(prometheus, 'count(ALERTS{alertname="StampedeNoLeader", alertstate="firing"})') == [1.0], "StampedeNoLeader does not fire in Prometheus", servers)
        until(lambda: len(recorder.got) >= 3, "StampedePartDown did not arrive", servers, recorder)
        active = f"http://127.0.0.1:{ports['alertmanager']}/api/v2/alerts"
        until(lambda: [one["labels"]["alertname"] for one in ask(active) if one["status"]["state"] == "suppressed"] == ["StampedeNoLeader"],
              "Alertmanager does not hold StampedeNoLeader back", servers)
        exactly(recorder, [("StampedePartDown", "redis", "firing", way) for way in ("mail", "slack", "webhook")])
        print(f"one alert by three ways, its end, one held back; {answers} queries of dashboards answered", end=" ")


def changed(text, series, value):
    text, count = re.subn(rf"^{re.escape(series)} .*$", f"{series} {value}", text, flags=re.MULTILINE)
    if count != 1:
        raise Wrong(f"{TABLE.name} has {count} lines of {series}")
    return text


def ways(recorder, status):
    return {way for name, _, told, way in list(recorder.got) if (name, told) == ("StampedeDeadLetters", status)}


def exactly(recorder, wanted):
    if sorted(recorder.got) != sorted(wanted):
        raise Wrong("the messages were:", *map(str, sorted(recorder.got)), "and should be:", *map(str, sorted(wanted)))


def configured(folder, scratch, exporter, recorder, mail, ports):
    """A copy of the shipped files that calls our servers and is in a hurry."""
    copy = scratch / "monitoring"
    shutil.copytree(folder.root, copy)
    for name, secret in {"stampede_key": KEY, "webhook_token": TOKEN, "smtp_password": PASSWORD, "slack_url": f"http://127.0.0.1:{recorder.port}/slack"}.items():
        # Without a newline: Alertmanager 0.25 takes it for a part of the password of the mail server.
        (copy / "secrets" / name).write_text(secret)

    with edited(copy / "prometheus" / "prometheus.yml") as config:
        config["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "500ms"}
        config["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"] = [f"127.0.0.1:{ports['alertmanager']}"]
    with edited(copy / "prometheus" / "targets" / "stampede.yml") as targets:
        targets[0]["targets"] = [f"127.0.0.1:{exporter.port}"]
    with edited(copy / "prometheus" / "alerts.yml") as rules:
        for group in rules["groups"]:
            for rule in group["rules"]:
                # Not even a slow machine may look like a node that is down.
                rule["for"] = "10s" if rule["alert"] == "StampedeNodeDown" else "2s"

    file = copy / "alertmanager" / "alertmanager.yml"
    text = file.read_text()
    for word, value in {"FILL_IN_SMTP_HOST:587": f"127.0.0.1:{mail.port}", "FILL_IN_SENDER@": "stampede@", "FILL_IN_SMTP_USER": "stampede", "FILL_IN_RECIPIENT@": "ann@",
                        "https://FILL_IN_WEBHOOK_HOST/alerts": f"http://127.0.0.1:{recorder.port}/alerts"}.items():
        if word not in text:
            raise Wrong(f"alertmanager.yml lacks {word}: this test sends nothing to real receivers, so it wants the file as it is shipped")
        text = text.replace(word, value)
    text = re.sub(r"#.*", "", text)
    if "FILL_IN" in text:
        raise Wrong("alertmanager.yml wants something to be filled in that this test does not know: " + re.search(r"FILL_IN\w+", text)[0])
    file.write_text(text)
    with edited(file) as config:
        config["global"]["smtp_require_tls"] = False
        config["route"] |= {"group_wait": "500ms", "group_interval": "1s"}
    return copy


@contextlib.contextmanager
def edited(path):
    content = yaml.safe_load(path.read_text())
    yield content
    path.write_text(yaml.safe_dump(content, sort_keys=False))


def dashboards(folder, prometheus):
    """Each query has an answer: with the metrics of the table, no panel is empty."""
    expressions = [*folder.dashboard_expressions(), *((where, expression) for where, expression, _ in folder.variable_expressions())]
    empty = [f"{where}: no answer to {expression}" for where, expression in expressions if not query(prometheus, expression)]
    if empty:
        raise Wrong(*empty)
    return len(expressions)


def query(prometheus, expression):
    address = f"{prometheus}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
    return [float(one["value"][1]) for one in ask(address)["data"]["result"]]


def ask(address):
    with urllib.request.urlopen(address, timeout=10) as answer:
        return json.load(answer)


def until(check, reason, servers, recorder=None):
    deadline = time.monotonic() + SECONDS
    while True:
        for server in servers:
            server.check()
        with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
            if check():
                return
        if time.monotonic() > deadline:
            got = [f"arrived: {one}" for one in recorder.got] if recorder else []
            raise Wrong(f"{reason} within {SECONDS} s", *got, *(server.errors() for server in servers))
        time.sleep(0.05)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class started:
    """Prometheus or Alertmanager; ended at the end, whatever happens."""

    def __init__(self, name, port, copy, scratch):
        data, self.log, self.name = scratch / f"{name}.data", scratch / f"{name}.log", name
        own = {"prometheus": [f"--storage.tsdb.path={data}"], "alertmanager": [f"--storage.path={data}", "--cluster.listen-address="]}[name]
        binary = {"prometheus": "prometheus", "alertmanager": "prometheus-alertmanager"}[name]
        command = [program(binary), f"--config.file={copy / name / f'{name}.yml'}", f"--web.listen-address=127.0.0.1:{port}", *own]
        self.process = subprocess.Popen(command, cwd=copy / name, stdout=self.log.open("w"), stderr=subprocess.STDOUT)

    def __enter__(self):
        return self

    def check(self):
        if self.process.poll() is not None:
            raise Wrong(f"{self.name} ended with {self.process.returncode}:", self.log.read_text()[-2000:])

    def errors(self):
        return "\n".join(line for line in self.log.read_text().splitlines() if "level=info" not in line and "level=debug" not in line)[-2000:]

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


class Server(ThreadingHTTPServer):
    """An HTTP server in a thread; its state are its attributes."""

    daemon_threads = True

    def __init__(self, handler, **state):
        super().__init__(("127.0.0.1", 0), handler)
        self.port = self.server_address[1]
        vars(self).update(state)

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Quiet(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", kind="text/plain"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Exporter(Quiet):
    """GET /metrics of a node, with a key."""

    def do_GET(self):
        if self.path != "/metrics" or self.headers["Authorization"] != f"Bearer {KEY}":
            self.server.refused += 1
            return self.answer(401)
        self.answer(200, self.server.text.encode(), "text/plain; version=0.0.4; charset=utf-8")


class Recorder(Quiet):
    """The webhook of alerts, and Slack: what arrived, as (alert, of what, status, way)."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/alerts":
            if self.headers["Authorization"] != f"Bearer {TOKEN}":
                return self.answer(401)
            for alert in body["alerts"]:
                labels = alert["labels"]
                self.server.got.append((labels["alertname"], labels.get("queue") or labels.get("part", ""), alert["status"], "webhook"))
        else:
            [message] = body["attachments"]
            self.server.got.append(read(message["title"], message["text"], "slack"))
        self.answer(200, b"ok")


def read(subject, text, way):
    """A message for people: its alert, of what, and whether it fires."""
    status, name, count = re.fullmatch(r"\[(FIRING|RESOLVED)\] (\w+) \((\d+)\)", subject.strip()).groups()
    if count != "1" or f"runbook.md#{name.lower()}" not in text:
        raise ValueError(f"not the message that was expected: {subject}\n{text}")
    what = re.search(r"queue (\w+) has dead letters|(\w+) is down", text)
    return name, (what[1] or what[2]) if what else "", status.lower(), way


class Mail(Controller):
    """A mail server that wants the user and the password."""

    def __init__(self, got):
        self.got = got

        def password(server, session, envelope, mechanism, data):
            return AuthResult(success=(data.login, data.password) == (b"stampede", PASSWORD.encode()), handled=False)

        super().__init__(self, hostname="127.0.0.1", port=free_port(), authenticator=password, auth_required=True,
                         auth_require_tls=False, auth_exclude_mechanism=["LOGIN"])

    async def handle_DATA(self, server, session, envelope):
        import email
        from email import policy

        message = email.message_from_bytes(envelope.content, policy=policy.default)
        self.got.append(read(message["Subject"], message.get_body().get_content(), "mail"))
        return "250 OK"

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

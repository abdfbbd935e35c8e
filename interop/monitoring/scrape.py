"""A text of GET /metrics of the program that ENGINE names, after some work: an order, campaigns that wait for their limit and
fail, a job that fails, a worker that is killed. Every metric of alerts and dashboards must be in it.
"""

import contextlib
import os
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

from kit import Wrong, parsed

SECONDS = 40
# Levels are read at most every two seconds.
FRESH = 2.2


@contextlib.contextmanager
def scraped(folder):
    """The files of the texts: from the port of the API, and from METRICS_LISTEN."""
    # It needs ENGINE when it is imported.
    from stage import Stage, free_port

    listen = f"127.0.0.1:{free_port()}"
    with Stage(WORKER_COUNT="2", METRICS_LISTEN=listen) as stage:
        try:
            work(stage)
            key = stage.key("viewer", "prometheus")
            until(stage, COUNTED, lambda: text(f"{stage.url}/metrics", key))
            kill_a_worker(stage)
            texts = {
                "open": until(stage, AT_THE_END, lambda: text(f"http://{listen}/metrics")),
                "api": until(stage, AT_THE_END, lambda: text(f"{stage.url}/metrics", key)),
            }
        except (OSError, KeyError, subprocess.SubprocessError) as error:
            raise Wrong(f"{type(error).__name__}: {error} {error.read().decode() if hasattr(error, 'read') else ''}", stage.said()[-2000:]) from None
        for name, told in texts.items():
            (Path(folder) / f"{name}.txt").write_text(told)
        yield [Path(folder) / f"{name}.txt" for name in texts]


def work(stage):
    event = stage.ask("POST", "/api/events", {"name": "Night"})["id"]
    stage.ask("POST", "/api/tickets", {"target": event, "name": "Ann", "quantity": 40})
    # Messages that are tried again, and messages of which nobody knows whether they arrived: those open a circuit breaker.
    for account, settings in (("failing", {"fail": 1}), ("silent", {"unknown": 1})):
        pacing = {"limit": {"max": 100, "perMs": 1000}}
        stage.ask("POST", "/api/accounts", {"id": account, "channel": "console", "settings": settings, "pacing": pacing})
    for account in ("console", "failing", "silent"):
        recipients = [{"phoneNumber": f"7999123{number:04}", "message": "x"} for number in range(25)]
        campaign = stage.ask("POST", "/api/contracts", {"accountId": account, "name": account, "recipients": recipients})["contractId"]
        stage.ask("POST", f"/api/contracts/{campaign}/start", {})
    # No worker knows such a job: it fails, and is a dead letter.
    stage.ask("POST", "/api/queues/tickets/jobs", {"name": "no-such-job"})


def kill_a_worker(stage):
    """One of the children of the server, as if it had crashed."""
    children = Path(f"/proc/{stage.process.pid}/task").glob("*/children")
    workers = [int(child) for file in children for child in file.read_text().split()]
    workers = [child for child in workers if b"worker" in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")]
    if not workers:
        raise Wrong("the server has no worker")
    os.kill(workers[0], signal.SIGKILL)


# What is 1 or more after that work: a metric that is always 0 has no source.
COUNTED = [
    'queue_jobs_total{queue="tickets",status="failed"}',
    'queue_job_duration_seconds_count{queue="tickets"}',
    'stampede_job_wait_seconds_count{queue="messages"}',
    'stampede_dead_letters{queue="tickets"}',
    'stampede_workers{state="running"}',
    'stampede_worker_slots',
    'stampede_leader',
    'stampede_tickets_total{status="completed"}',
    'stampede_campaign_messages_total{channel="console",outcome="sent"}',
    'stampede_campaign_messages_total{channel="console",outcome="retried"}',
    'stampede_campaign_messages_total{channel="console",outcome="unknown"}',
    'stampede_campaign_unknown',
    'stampede_limit_waits_total{kind="account"}',
    'stampede_breaker_open{service="campaign"}',
    'stampede_up{part="redis"}',
    'stampede_up{part="store"}',
    'stampede_up{part="files"}',
]
# A killed worker takes its last second with it. So a worker is killed last, and what was counted stays.
AT_THE_END = [*COUNTED, 'stampede_worker_restarts_total{reason="died"}']


def until(stage, counted, ask):
    deadline = time.monotonic() + SECONDS
    while True:
        told = ask()
        values = dict(line.rsplit(" ", 1) for line in told.splitlines() if line and not line.startswith("#"))
        missing = [series for series in counted if float(values.get(series, 0)) < 1]
        if not missing:
            return told
        if time.monotonic() > deadline:
            raise Wrong(*(f"after {SECONDS} s a server that works still says {one} is {values.get(one)}" for one in missing), stage.said()[-2000:])
        time.sleep(FRESH)


def text(url, key=None):
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"} if key else {})
    with urllib.request.urlopen(request, timeout=20) as answer:
        told = answer.read().decode()
    parsed(told)
    return told

"""A server that a test can stop and kill, and a worker process that runs until it is told to stop.

Every test has its own server on its own port with its own folder, so that a restart disturbs nobody. ENGINE is the
path of `stampede`; without it redis-server is the measure. JOBS is the number of jobs of a test.

Jobs tell each run in a file, not in the server: a job that ran twice is seen even if the server forgot the first run.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import redis

JOBS = int(os.environ.get("JOBS", "300"))
HERE = Path(__file__).parent


def eventually(check, within=60.0):
    """Calls `check` until it is true; a connection that is away counts as false."""
    deadline = time.monotonic() + within
    while True:
        try:
            found = check()
        except redis.exceptions.RedisError as error:
            found, last = False, error
        else:
            last = found
        if found:
            return found
        assert time.monotonic() < deadline, f"still {last!r} after {within} s"
        time.sleep(0.02)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    """One server that keeps its port and its data over restarts."""

    def __init__(self, folder):
        self.folder, self.port, self.process = folder, free_port(), None
        self.url = f"redis://127.0.0.1:{self.port}"
        self.client = redis.Redis(port=self.port)

    def start(self):
        engine, port, folder = os.environ.get("ENGINE"), str(self.port), str(self.folder)
        command = (
            [engine, "engine", "--port", port, "--dir", folder, "--fsync", "always"]
            if engine
            else ["redis-server", "--port", port, "--dir", folder, "--appendonly", "yes", "--appendfsync", "always"]
        )
        log = open(self.folder.with_suffix(".log"), "ab")
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        eventually(lambda: self.client.ping())

    def is_free_of_readers(self):
        """Whether no client waits for a job. A server that has not seen yet that a worker is gone may give it one."""
        return self.client.info("clients")["blocked_clients"] == 0

    def end(self, number):
        self.process.send_signal(number)
        self.process.wait(60)

    def restart(self, number):
        """Ends the server with a signal and starts it on the same port with the same data."""
        self.end(number)
        self.start()


class Worker:
    """A worker process; `stop` asks it to finish what it runs."""

    def __init__(self, command, environment):
        # In a session of its own: workers have child processes, which a kill must reach too.
        self.process = subprocess.Popen(command, env=environment, cwd=HERE, start_new_session=True)

    def stop(self, number=signal.SIGTERM):
        if number == signal.SIGKILL:
            self.kill()
        elif self.process.poll() is None:
            self.process.send_signal(number)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
            self.process.wait(30)

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Stage:
    """The server, the workers and the runs of one test."""

    def __init__(self, folder):
        data = folder / "data"
        data.mkdir()
        self.server = Server(data)
        self.server.start()
        self.told = folder / "runs"
        self.told.touch()
        self.environment = {**os.environ, "SERVER_URL": self.server.url, "RUNS": str(self.told), "PYTHONPATH": str(HERE)}
        self.workers = []

    def worker(self, *command):
        """Starts a program of this virtual environment."""
        program = Path(sys.executable).with_name(command[0])
        worker = Worker([str(program), *command[1:]], self.environment)
        self.workers.append(worker)
        return worker

    def runs(self):
        """How often each job ran."""
        return Counter(self.told.read_text().split())

    def close(self):
        for worker in self.workers:
            worker.stop(signal.SIGKILL)
        self.server.end(signal.SIGKILL)


@pytest.fixture
def stage(tmp_path, monkeypatch):
    made = Stage(tmp_path)
    for name in ("SERVER_URL", "RUNS"):
        monkeypatch.setenv(name, made.environment[name])
    yield made
    made.close()


def check_restarts(stage, enqueue, start_worker, result_of, stop_signal=signal.SIGTERM):
    """Jobs of a library outlive a clean stop and a `kill -9` of the server, and each runs exactly once.

    The worker is stopped when it has nothing to do: what it holds when a server dies, each library handles in its own way.
    """
    third = JOBS // 3
    first = {enqueue(f"first-{n}"): f"first-{n}" for n in range(third)}
    worker = start_worker()
    for job, name in first.items():
        assert eventually(lambda: result_of(job)) == f"done {name}"
    worker.stop(stop_signal)
    eventually(stage.server.is_free_of_readers)
    second = {enqueue(f"second-{n}"): f"second-{n}" for n in range(third)}
    stage.server.restart(signal.SIGTERM)
    last = {enqueue(f"last-{n}"): f"last-{n}" for n in range(third)}
    stage.server.restart(signal.SIGKILL)
    worker = start_worker()
    every = {**first, **second, **last}
    eventually(lambda: len(stage.runs()) == len(every))
    for job, name in every.items():
        assert eventually(lambda: result_of(job)) == f"done {name}"
    assert stage.runs() == Counter(every.values())
    worker.stop(stop_signal)

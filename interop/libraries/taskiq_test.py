"""taskiq with its list broker and its stream broker; the stream broker reads with a consumer group."""

import asyncio
import importlib
import signal

import pytest
from conftest import JOBS, check_restarts, eventually

BROKERS = pytest.mark.parametrize("kind", ["list", "stream"])


def start(stage, kind, ack="when_executed"):
    stage.environment["BROKER"] = kind
    return stage.worker("taskiq", "worker", "taskiq_broker:broker", "--workers=1", "--ack-type", ack, "--log-level", "ERROR")


class Producer:
    """taskiq's broker, called from tests that are not asynchronous."""

    def __init__(self, kind, monkeypatch):
        monkeypatch.setenv("BROKER", kind)
        self.loop = asyncio.new_event_loop()

    def __call__(self, work):
        async def run():
            import taskiq_broker

            tasks = importlib.reload(taskiq_broker)
            await tasks.broker.startup()
            try:
                return await work(tasks)
            finally:
                await tasks.broker.shutdown()

        return self.loop.run_until_complete(run())

    def enqueue(self, task, name):
        async def work(tasks):
            return (await getattr(tasks, task).kiq(name)).task_id

        return self(work)

    def result(self, job):
        async def work(tasks):
            return await tasks.results.is_result_ready(job) and (await tasks.results.get_result(job)).return_value

        return eventually(lambda: self(work))


@BROKERS
def jobs_of_taskiq_run_once_and_answer(stage, kind, monkeypatch):
    producer = Producer(kind, monkeypatch)
    sent = {f"job-{n}": producer.enqueue("answer", f"job-{n}") for n in range(JOBS)}
    start(stage, kind)
    assert {name: producer.result(job) for name, job in sent.items()} == {name: f"done {name}" for name in sent}
    assert set(stage.runs().values()) == {1}


@BROKERS
def a_task_of_taskiq_is_retried(stage, kind, monkeypatch):
    producer = Producer(kind, monkeypatch)
    stumbles = producer.enqueue("stumble", "stumbles")
    start(stage, kind)
    assert producer.result(stumbles) == 3


@BROKERS
def jobs_of_taskiq_outlive_restarts_of_the_server(stage, kind, monkeypatch):
    producer = Producer(kind, monkeypatch)
    # Asked to stop, the stream broker goes on reading and never ends, on redis-server too: its loop swallows the
    # cancellation. A worker that has nothing to do can as well be killed.
    check_restarts(stage, lambda name: producer.enqueue("answer", name), lambda: start(stage, kind), producer.result, signal.SIGKILL)


def a_task_of_a_killed_worker_is_claimed_by_another_even_after_the_server_was_killed(stage, monkeypatch):
    producer = Producer("stream", monkeypatch)
    held = producer.enqueue("hold", "held")
    first = start(stage, "stream")
    eventually(lambda: stage.runs()["held"] == 1)
    first.stop(signal.SIGKILL)
    stage.server.restart(signal.SIGKILL)
    start(stage, "stream")
    # taskiq looks for entries of others after it has got a new one.
    eventually(lambda: stage.server.client.xpending_range("taskiq", "taskiq", "-", "+", 1, idle=1000))
    assert producer.result(producer.enqueue("answer", "wakes")) == "done wakes"
    assert producer.result(held) == "done held"
    assert stage.runs()["held"] == 2

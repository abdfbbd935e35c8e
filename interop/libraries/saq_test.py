"""SAQ: jobs, retries, scheduled jobs."""

import asyncio
import time

from conftest import JOBS, check_restarts, eventually
from saq import Queue, Status


def start(stage):
    return stage.worker("saq", "saq_jobs.settings")


def sweep(stage):
    """Has a worker look for stuck jobs while there are none, which SAQ then does not repeat for a minute.

    A worker does so at its start, and takes a job that it is just fetching for a stuck one.
    """
    worker = start(stage)
    eventually(lambda: stage.server.client.keys("saq:*:sweep"))
    worker.stop()


class Producer:
    """SAQ's queue, called from tests that are not asynchronous."""

    def __init__(self, stage):
        self.loop = asyncio.new_event_loop()
        self.url = stage.server.url

    def __call__(self, work):
        async def run():
            queue = Queue.from_url(self.url)
            await queue.connect()
            try:
                return await work(queue)
            finally:
                await queue.disconnect()

        return self.loop.run_until_complete(run())

    def enqueue(self, function, **options):
        async def work(queue):
            return (await queue.enqueue(function, ttl=600, timeout=60, **options)).key

        return self(work)

    def result(self, job):
        async def work(queue):
            found = await queue.job(job)
            return found and found.status == Status.COMPLETE and found.result

        return eventually(lambda: self(work))


def jobs_of_saq_run_once_and_answer(stage):
    sweep(stage)
    producer = Producer(stage)
    sent = {f"job-{n}": producer.enqueue("answer", name=f"job-{n}") for n in range(JOBS)}
    start(stage)
    assert {name: producer.result(job) for name, job in sent.items()} == {name: f"done {name}" for name in sent}
    assert set(stage.runs().values()) == {1}


def a_job_of_saq_is_retried_and_delayed(stage):
    sweep(stage)
    producer = Producer(stage)
    due = time.time() + 2
    delayed = producer.enqueue("now", name="later", scheduled=int(due))
    stumbles = producer.enqueue("stumble", name="stumbles", retries=3)
    start(stage)
    assert producer.result(stumbles) == 3
    assert producer.result(delayed) >= int(due)


def jobs_of_saq_outlive_restarts_of_the_server(stage):
    sweep(stage)
    producer = Producer(stage)
    check_restarts(stage, lambda name: producer.enqueue("answer", name=name), lambda: start(stage), producer.result)

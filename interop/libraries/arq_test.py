"""arq: jobs in a sorted set, results, retries, deferred jobs."""

import asyncio
import signal
import time

from arq import create_pool
from arq.connections import RedisSettings
from arq.jobs import Job
from conftest import JOBS, check_restarts


def start(stage):
    return stage.worker("arq", "arq_jobs.WorkerSettings")


class Producer:
    """arq's producer, called from tests that are not asynchronous."""

    def __init__(self, stage):
        self.loop = asyncio.new_event_loop()
        self.url = stage.server.url

    def __call__(self, work):
        async def run():
            pool = await create_pool(RedisSettings.from_dsn(self.url))
            try:
                return await work(pool)
            finally:
                await pool.aclose()

        return self.loop.run_until_complete(run())

    def enqueue(self, *args, **options):
        async def work(pool):
            return (await pool.enqueue_job(*args, **options)).job_id

        return self(work)

    def result(self, job):
        return self(lambda pool: Job(job, pool).result(timeout=60, poll_delay=0.02))


def jobs_of_arq_run_once_and_answer(stage):
    producer = Producer(stage)
    start(stage)
    sent = {f"job-{n}": producer.enqueue("answer", f"job-{n}") for n in range(JOBS)}
    assert {name: producer.result(job) for name, job in sent.items()} == {name: f"done {name}" for name in sent}
    assert set(stage.runs().values()) == {1}


def a_job_of_arq_is_retried_and_delayed(stage):
    producer = Producer(stage)
    due = time.time() + 1.5
    delayed = producer.enqueue("now", "later", _defer_by=1.5)
    stumbles = producer.enqueue("stumble", "stumbles")
    start(stage)
    assert producer.result(stumbles) == 3
    assert producer.result(delayed) >= due - 0.1


def jobs_of_arq_outlive_restarts_of_the_server(stage):
    producer = Producer(stage)
    check_restarts(stage, lambda name: producer.enqueue("answer", name), lambda: start(stage), producer.result, signal.SIGINT)

"""The tasks of the Celery test."""

import os

from celery import Celery

import runs

app = Celery("jobs", broker=f"{os.environ['SERVER_URL']}/0", backend=f"{os.environ['SERVER_URL']}/1")
app.conf.update(task_acks_late=True, worker_prefetch_multiplier=1, broker_connection_retry_on_startup=True)


@app.task
def answer(name):
    return runs.answer(name)


@app.task
def now(name):
    return runs.now(name)


@app.task(bind=True, max_retries=3, default_retry_delay=0.1)
def stumble(self, name):
    runs.tell(name)
    if self.request.retries < 2:
        raise self.retry(exc=RuntimeError("not yet"))
    return self.request.retries


@app.task
def total(numbers):
    return sum(numbers)


@app.task
def number(n):
    return n

"""Celery with Redis as broker and as result backend."""

import importlib
import time

import pytest
from conftest import JOBS, check_restarts


@pytest.fixture
def tasks(stage):
    import celery_app

    return importlib.reload(celery_app)


def start(stage):
    return stage.worker("celery", "-A", "celery_app", "worker", "--concurrency=2", "--pool=threads", "--loglevel=error", "--without-gossip", "--without-mingle")


def jobs_of_celery_run_once_and_answer(stage, tasks):
    start(stage)
    sent = {name: tasks.answer.delay(name) for name in (f"job-{n}" for n in range(JOBS))}
    assert {name: result.get(60) for name, result in sent.items()} == {name: f"done {name}" for name in sent}
    assert set(stage.runs().values()) == {1}


def a_task_of_celery_is_retried_delayed_and_joined(stage, tasks):
    from celery import chord

    start(stage)
    due = time.time() + 1.5
    delayed = tasks.now.apply_async(["later"], countdown=1.5)
    assert tasks.stumble.delay("stumbles").get(60) == 2
    assert stage.runs()["stumbles"] == 3
    assert chord(tasks.number.s(n) for n in range(10))(tasks.total.s()).get(60) == 45
    assert delayed.get(60) >= due - 0.1


def jobs_of_celery_outlive_restarts_of_the_server(stage, tasks):
    results = {}

    def enqueue(name):
        sent = tasks.answer.apply_async([name], retry=True)
        results[sent.id] = sent
        return sent.id

    check_restarts(stage, enqueue, lambda: start(stage), lambda job: results[job].get(60))

"""RQ: jobs, retries, scheduled jobs, dependent jobs."""

import time
from datetime import timedelta

import rq_jobs
from conftest import JOBS, check_restarts, eventually
from rq import Queue, Retry
from rq.job import Job


def start(stage, *more):
    return stage.worker("rq", "worker", "--url", stage.server.url, "--with-scheduler", "--quiet", "--worker-class", "rq.SimpleWorker", *more, "default")


def result_of(stage, job):
    return Job.fetch(job, connection=stage.server.client).return_value()


def jobs_of_rq_run_once_and_answer(stage):
    queue = Queue(connection=stage.server.client)
    start(stage)
    sent = {f"job-{n}": queue.enqueue(rq_jobs.answer, f"job-{n}").id for n in range(JOBS)}
    for name, job in sent.items():
        assert eventually(lambda: result_of(stage, job)) == f"done {name}"
    assert set(stage.runs().values()) == {1}


def a_job_of_rq_is_retried_delayed_and_waits_for_another(stage):
    queue = Queue(connection=stage.server.client)
    # RQ keeps whole seconds, and its scheduler looks once a second.
    due = time.time() + 1.5
    delayed = queue.enqueue_in(timedelta(seconds=1.5), rq_jobs.now, "later").id
    stumbles = queue.enqueue(rq_jobs.stumble, "stumbles", retry=Retry(max=3)).id
    after = queue.enqueue(rq_jobs.answer, "after", depends_on=stumbles).id
    start(stage)
    assert eventually(lambda: result_of(stage, stumbles)) == 3
    assert eventually(lambda: result_of(stage, after)) == "done after"
    assert eventually(lambda: result_of(stage, delayed)) >= int(due)


def jobs_of_rq_outlive_restarts_of_the_server(stage):
    queue = Queue(connection=stage.server.client)
    check_restarts(stage, lambda name: queue.enqueue(rq_jobs.answer, name).id, lambda: start(stage), lambda job: result_of(stage, job))

"""The jobs and the worker settings of the arq test."""

import os

from arq import Retry
from arq.connections import RedisSettings

import runs


async def answer(_, name):
    return runs.answer(name)


async def now(_, name):
    return runs.now(name)


async def stumble(context, name):
    runs.tell(name)
    if context["job_try"] < 3:
        raise Retry(defer=0.1)
    return context["job_try"]


class WorkerSettings:
    functions = [answer, now, stumble]
    redis_settings = RedisSettings.from_dsn(os.environ.get("SERVER_URL", "redis://127.0.0.1"))
    poll_delay = 0.05
    keep_result = 600
    # A worker that is asked to stop ends its jobs first.
    job_completion_wait = 30

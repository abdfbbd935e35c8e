"""The jobs and the worker settings of the SAQ test."""

import os

from saq import Queue

import runs


async def answer(_, *, name):
    return runs.answer(name)


async def now(_, *, name):
    return runs.now(name)


async def stumble(context, *, name):
    runs.tell(name)
    if context["job"].attempts < 3:
        raise RuntimeError("not yet")
    return context["job"].attempts


settings = {
    "queue": Queue.from_url(os.environ.get("SERVER_URL", "redis://127.0.0.1")),
    "functions": [answer, now, stumble],
    "concurrency": 5,
    "timers": {"schedule": 1, "sweep": 30},
}

"""The broker and the tasks of the taskiq test: BROKER is `list` or `stream`."""

import asyncio
import os

from taskiq import SimpleRetryMiddleware
from taskiq_redis import ListQueueBroker, RedisAsyncResultBackend, RedisStreamBroker

import runs

url = os.environ.get("SERVER_URL", "redis://127.0.0.1")
results = RedisAsyncResultBackend(redis_url=url)
# Entries of a consumer that died are claimed after a second, even if it died while it held the lock for that.
stream = {"idle_timeout": 1000, "xread_block": 500, "unacknowledged_lock_timeout": 2}
made = RedisStreamBroker(url=url, **stream) if os.environ.get("BROKER") == "stream" else ListQueueBroker(url=url)
broker = made.with_result_backend(results).with_middlewares(SimpleRetryMiddleware(default_retry_count=3))


@broker.task(task_name="answer")
async def answer(name: str) -> str:
    return runs.answer(name)


@broker.task(task_name="stumble", retry_on_error=True)
async def stumble(name: str) -> int:
    runs.tell(name)
    if runs.times_told(name) < 3:
        raise RuntimeError("not yet")
    return runs.times_told(name)


@broker.task(task_name="hold")
async def hold(name: str) -> str:
    """The first run never ends: its worker is killed."""
    runs.tell(name)
    if runs.times_told(name) == 1:
        await asyncio.sleep(600)
    return f"done {name}"

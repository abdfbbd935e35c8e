"""Where the server is, and a stage per test: queues, workers and listeners under a prefix of their own."""

import asyncio
import os
import secrets
import time

import pytest
import redis.asyncio as redis
from bullmq import FlowProducer, Queue, QueueEvents, Worker


def server_url() -> str:
    """REDIS_URL in redis-py's spelling: its unix sockets have three slashes."""
    url = os.environ.get("REDIS_URL")
    if not url:
        raise RuntimeError("REDIS_URL says where the server is, for example redis://127.0.0.1:6379")
    if url.startswith("/"):
        return f"unix://{url}"
    if url.startswith("unix:") and not url.startswith("unix://"):
        return f"unix://{url[len('unix:'):]}"
    return url


async def eventually(check, within: float = 60.0):
    """Calls `check` until it is true and raises nothing."""
    deadline = time.monotonic() + within
    while True:
        try:
            found = check()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return found
            failure = AssertionError(f"still {found!r} after {within} s")
        except AssertionError as error:
            failure = error
        if time.monotonic() > deadline:
            raise failure
        await asyncio.sleep(0.02)


class Stage:
    """Makes what a test needs and clears it away in the reverse order."""

    def __init__(self, connection=None):
        self.prefix = f"it-{secrets.token_hex(6)}"
        self.name = f"q-{secrets.token_hex(3)}"
        self.connection = connection or server_url()
        self._open = []

    def _options(self, more):
        return {"connection": self.connection, "prefix": self.prefix, **(more or {})}

    def _keep(self, thing):
        self._open.append(thing)
        return thing

    def key(self, *parts):
        return ":".join([self.prefix, *map(str, parts)])

    def queue(self, called=None, **more):
        return self._keep(Queue(called or self.name, self._options(more)))

    def worker(self, processor, called=None, **more):
        worker = self._keep(Worker(called or self.name, processor, self._options(more)))
        worker.on("error", lambda *_: None)
        return worker

    def flow(self):
        # FlowProducer takes the connection first and the rest after it.
        return self._keep(FlowProducer(self.connection, {"prefix": self.prefix}))

    def events(self, called=None, **more):
        return self._keep(QueueEvents(called or self.name, self._options({"lastEventId": "0-0", "blockingTimeout": 500, **more})))

    def raw(self):
        return redis.from_url(server_url(), decode_responses=True, protocol=3)

    async def clear(self):
        for thing in reversed(self._open):
            # A worker of Python's BullMQ that is closed gently at the wrong moment never ends, on Redis too.
            closing = thing.close(force=True) if isinstance(thing, Worker) else thing.close()
            await asyncio.wait_for(closing, 30)
        client = self.raw()
        async for key in client.scan_iter(match=f"{self.prefix}:*", count=500):
            await client.unlink(key)
        await client.aclose()


@pytest.fixture
async def stage():
    made = Stage()
    yield made
    await made.clear()


def heard(emitter, event, count=1):
    """A future of the arguments of the next `count` events."""
    future = asyncio.get_running_loop().create_future()
    seen = []

    def listen(*args):
        seen.append(args)
        if len(seen) == count and not future.done():
            future.set_result(seen)

    emitter.on(event, listen)
    return asyncio.wait_for(future, 60)

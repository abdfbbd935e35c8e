"""Python's side of crates/broker/tests/it/interop: reads one JSON request a line, answers with one line each.

`python peer.py redis://…`; the workers it starts report each job as a line, too.
"""

import asyncio
import json
import sys

from bullmq import FlowProducer, Queue, QueueEvents, Worker

connection = sys.argv[1]
queues, open_things = {}, []


def say(value):
    print(json.dumps(value), flush=True)


def queue(name):
    if name not in queues:
        queues[name] = Queue(name, {"connection": connection})
    return queues[name]


async def add(request):
    return [job.id for job in await queue(request["queue"]).addBulk(request["jobs"])]


async def flow(request):
    producer = FlowProducer(connection)
    tree = await producer.add(request["flow"])
    await producer.close()
    return tree["job"].id


async def work(request):
    """Works on a queue: jobs named "fail" fail, others answer with who did them."""

    async def process(job, token):
        if job.name == "fail":
            raise Exception("Python cannot do this")
        return {"by": "python", "children": await job.getChildrenValues()}

    worker = Worker(request["queue"], process, {"connection": connection, "concurrency": request.get("slots", 1)})
    open_things.append(worker)
    worker.on("error", lambda *_: None)
    worker.on("completed", lambda job, *_: say({"completed": job.id, "data": job.data}))
    worker.on("failed", lambda job, *_: say({"failed": job.id}))
    return "working"


async def listen(request):
    """Reports what QueueEvents hears."""
    heard = QueueEvents(request["queue"], {"connection": connection, "lastEventId": "0-0", "blockingTimeout": 500})
    open_things.append(heard)
    for event in request["events"]:
        heard.on(event, lambda details, *_, event=event: say({"event": event, **details}))
    return "listening"


async def job(request):
    found = await queue(request["queue"]).getJob(request["id"])
    return found and {
        "state": await found.getState(),
        "data": found.data,
        "attemptsMade": found.attemptsMade,
        "failedReason": found.failedReason,
        "returnvalue": found.returnvalue,
        "progress": found.progress,
        "logs": (await queue(request["queue"]).getJobLogs(request["id"]))["logs"],
    }


async def main():
    requests = {"add": add, "flow": flow, "work": work, "listen": listen, "job": job}
    while line := await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline):
        request = json.loads(line)
        try:
            say({"answer": await requests[request["do"]](request)})
        except Exception as error:
            say({"error": repr(error)})
    for thing in open_things:
        # A worker of Python's BullMQ that is closed gently at the wrong moment never ends.
        await (thing.close(force=True) if isinstance(thing, Worker) else thing.close())
    for thing in queues.values():
        await thing.close()


asyncio.run(main())

"""Node and Python on the same queues: what one adds, the other works on and reads."""

import asyncio
import json
import os
from contextlib import asynccontextmanager

import pytest
from conftest import eventually, heard

BRIDGE = os.path.join(os.environ.get("INTEROP_NODE", ""), "processes", "bridge.mjs")


async def node(*args):
    """Runs Node's side once and returns what it printed."""
    process = await asyncio.create_subprocess_exec("node", BRIDGE, *args, stdout=asyncio.subprocess.PIPE)
    out, _ = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0
    return json.loads(out)


@asynccontextmanager
async def node_worker(stage, name):
    """A Node worker; yields a function that waits for its next line."""
    process = await asyncio.create_subprocess_exec(
        "node", BRIDGE, "work", stage.prefix, name, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )

    async def said():
        line = await asyncio.wait_for(process.stdout.readline(), 30)
        assert line, "Node's worker ended"
        return json.loads(line)

    try:
        assert await said() == "ready"
        yield said
    finally:
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), 10)
        except asyncio.TimeoutError:
            process.kill()


SHAPES = [{"n": 1.5, "text": "é ✓ /", "list": [None, True, []], "big": 2**53 - 1}, {"empty": {}}, {"deep": {"a": [{"b": 1}]}}]


async def jobs_added_by_node_are_worked_on_by_python(stage):
    jobs = [{"name": "from node", "data": data, "opts": {"attempts": 2}} for data in SHAPES]
    ids = await node("add", stage.prefix, stage.name, json.dumps(jobs))
    assert ids == ["1", "2", "3"]
    seen = {}

    async def work(job, token):
        seen[job.id] = (job.name, job.data)
        await job.log("worked on by python")
        await job.updateProgress({"half": True})
        return {"by": "python", "got": job.data}

    worker = stage.worker(work)
    await heard(worker, "completed", 3)
    assert seen == {str(n + 1): ("from node", data) for n, data in enumerate(SHAPES)}
    shown = await node("show", stage.prefix, stage.name, "1")
    assert shown["state"] == "completed"
    assert shown["returnvalue"] == {"by": "python", "got": SHAPES[0]}
    assert shown["progress"] == {"half": True}
    assert shown["logs"] == ["worked on by python"]
    assert shown["attemptsMade"] == 1


async def jobs_added_by_python_are_worked_on_by_node(stage):
    queue = stage.queue()
    async with node_worker(stage, stage.name) as said:
        jobs = await queue.addBulk([{"name": "from python", "data": data, "opts": {}} for data in SHAPES])
        assert [await said() for _ in jobs] == [{"completed": job.id} for job in jobs]
        bad = await queue.add("x", {"fail": "on purpose"})
        assert await said() == {"failed": bad.id}
    for job, data in zip(jobs, SHAPES):
        read = await queue.getJob(job.id)
        assert read.returnvalue == {"by": "node", "got": data, "children": {}}
        assert (await queue.getJobLogs(job.id))["logs"] == ["worked on by node"]
    failed = await queue.getJob(bad.id)
    assert failed.failedReason == "node failed: on purpose"


async def a_flow_of_both_ends_in_node(stage):
    tree = await stage.flow().add(
        {
            "name": "parent", "queueName": "node-parents", "data": {"p": 1},
            "children": [{"name": "c", "queueName": "python-children", "data": {"n": n}} for n in (1, 2)],
        }
    )

    async def work(job, token):
        return job.data["n"] * 100

    stage.worker(work, "python-children")
    async with node_worker(stage, "node-parents") as said:
        assert await said() == {"completed": tree["job"].id}
    job = await stage.queue("node-parents").getJob(tree["job"].id)
    assert sorted(job.returnvalue["children"].values()) == [100, 200]


async def a_flow_made_by_node_is_finished_by_python(stage):
    flow = {"name": "p", "queueName": "parents", "data": {}, "children": [{"name": "c", "queueName": "children", "data": {"n": n}} for n in (1, 2, 3)]}
    parent = await node("flow", stage.prefix, json.dumps(flow))

    async def small(job, token):
        return job.data["n"]

    async def big(job, token):
        return sum((await job.getChildrenValues()).values())

    stage.worker(small, "children")
    worker = stage.worker(big, "parents")
    await heard(worker, "completed")
    assert (await stage.queue("parents").getJob(parent)).returnvalue == 6


async def workers_of_both_share_one_queue_and_no_job_is_lost_or_doubled(stage):
    queue = stage.queue()
    mine = []

    async def work(job, token):
        mine.append(job.id)
        await asyncio.sleep(job.data["ms"] / 1000)
        return {"by": "python"}

    stage.worker(work, concurrency=2)
    await eventually(lambda: queue.get_workers())
    async with node_worker(stage, stage.name):
        await queue.addBulk([{"name": "x", "data": {"n": n, "ms": 20}} for n in range(300)])
        await eventually(lambda: _count(queue, 300))
    done = await queue.getJobs(["completed"])
    by = [job.returnvalue["by"] for job in done]
    assert by.count("python") == len(set(mine)) == len(mine)
    assert by.count("node") + by.count("python") == 300
    assert by.count("node") > 0 and by.count("python") > 0
    assert all(job.attemptsMade == 1 for job in done)


async def events_of_nodes_work_are_heard_in_python(stage):
    queue, events = stage.queue(), stage.events()
    finished = heard(events, "completed", 2)
    async with node_worker(stage, stage.name):
        await queue.addBulk([{"name": "x", "data": {"n": n}} for n in range(2)])
        told = await finished
    assert [args["returnvalue"]["by"] for args, _ in told] == ["node", "node"]


async def _count(queue, wanted):
    counts = await queue.getJobCounts("completed")
    return counts["completed"] == wanted


pytestmark = pytest.mark.skipif(not os.environ.get("INTEROP_NODE"), reason="interop/run python sets INTEROP_NODE")

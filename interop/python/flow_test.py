"""Flows from Python: parents that wait for their children."""

import pytest
from bullmq import WaitingChildrenError
from conftest import eventually, heard


def child(data, opts=None):
    return {"name": "child", "queueName": "children", "data": data, "opts": opts or {}}


async def a_parent_runs_after_its_children(stage):
    tree = await stage.flow().add(
        {"name": "parent", "queueName": "parents", "data": {}, "children": [child({"n": n}) for n in range(3)]}
    )
    assert await tree["job"].getState() == "waiting-children"

    async def small(job, token):
        return job.data["n"] * 10

    async def big(job, token):
        return sorted((await job.getChildrenValues()).values())

    stage.worker(small, "children")
    worker = stage.worker(big, "parents")
    await heard(worker, "completed")
    parents = stage.queue("parents")
    assert (await parents.getJob(tree["job"].id)).returnvalue == [0, 10, 20]


async def flows_of_flows_are_added_in_bulk(stage):
    grand = {"name": "g", "queueName": "grand", "data": {}, "children": [{"name": "p", "queueName": "parents", "data": {}, "children": [child({})]}]}
    trees = await stage.flow().addBulk([grand, grand])
    assert len(trees) == 2
    for name, state in [("grand", "waiting-children"), ("parents", "waiting-children"), ("children", "waiting")]:
        jobs = await stage.queue(name).getJobs([state])
        assert len(jobs) == 2, name


@pytest.mark.parametrize(
    "option, state",
    [("failParentOnFailure", "failed"), ("ignoreDependencyOnFailure", "waiting"), ("removeDependencyOnFailure", "waiting"), ("continueParentOnFailure", "waiting")],
)
async def a_failing_child_does_to_its_parent_what_it_was_told(stage, option, state):
    tree = await stage.flow().add({"name": "p", "queueName": "parents", "data": {}, "children": [child({}, {option: True})]})

    async def work(job, token):
        raise ValueError("bad child")

    worker = stage.worker(work, "children")
    await heard(worker, "failed")
    if state == "failed":
        # The parent is failed by the worker of its own queue.
        async def never(job, token):
            raise AssertionError("must not run")

        stage.worker(never, "parents")
    await eventually(lambda: _state(tree["job"], state))


async def a_job_waits_for_children_it_makes_itself(stage):
    children = stage.queue("children")
    runs = 0

    async def work(job, token):
        nonlocal runs
        runs += 1
        if runs == 1:
            for n in range(2):
                await children.add("child", {"n": n}, {"parent": {"id": job.id, "queue": f"{stage.prefix}:parents"}})
        if await job.moveToWaitingChildren(token, {}):
            raise WaitingChildrenError()
        return sorted((await job.getChildrenValues()).values())

    async def small(job, token):
        return job.data["n"]

    worker = stage.worker(work, "parents")
    done = heard(worker, "completed")
    job = await stage.queue("parents").add("x", {})
    await eventually(lambda: _state(job, "waiting-children"))
    stage.worker(small, "children")
    await done
    assert runs == 2
    assert (await stage.queue("parents").getJob(job.id)).returnvalue == [0, 1]


async def _state(job, state):
    found = await job.getState()
    assert found == state, found
    return True

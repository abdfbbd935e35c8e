"""Python's BullMQ: queues, workers, retries, delays, limits, schedulers and events."""

import asyncio
import time

import pytest
from bullmq import UnrecoverableError, DelayedError
from conftest import eventually, heard


async def a_job_is_read_back_as_it_was_added(stage):
    queue = stage.queue()
    data = {"text": "Grüße ✓", "list": [1, 2.5, None, True], "nested": {"empty": {}}}
    job = await queue.add("order", data, {"attempts": 3, "backoff": {"type": "fixed", "delay": 10}})
    assert job.id == "1"
    read = await queue.getJob(job.id)
    assert read.data == data
    assert read.name == "order"
    assert read.opts["attempts"] == 3
    assert await read.getState() == "waiting"
    assert await queue.getJob("nobody") is None


async def a_bulk_is_added_in_order_within_one_transaction(stage):
    queue = stage.queue()
    jobs = await queue.addBulk([{"name": "x", "data": {"n": n}} for n in range(200)])
    assert [job.id for job in jobs] == [str(n + 1) for n in range(200)]
    page = await queue.getJobs(["wait"], 0, 4, True)
    assert [job.data["n"] for job in page] == [0, 1, 2, 3, 4]
    assert await queue.getWaitingCount() == 200


async def every_state_is_counted_and_listed(stage):
    queue = stage.queue()
    hand = stage.worker(None)
    for name in ["completed", "failed", "active"]:
        await queue.add(name, {})
    await (await hand.getNextJob("token")).moveToCompleted({"ok": True}, "token")
    await (await hand.getNextJob("token")).moveToFailed(Exception("no luck"), "token")
    await hand.getNextJob("token")
    await queue.add("waiting", {})
    await queue.add("delayed", {}, {"delay": 600_000})
    await queue.add("prioritized", {}, {"priority": 7})
    counts = await queue.getJobCounts("completed", "failed", "active", "wait", "delayed", "prioritized")
    assert all(count == 1 for count in counts.values()), counts
    assert (await queue.getFailed())[0].failedReason == "no luck"
    assert (await queue.getCompleted())[0].returnvalue == {"ok": True}
    assert (await queue.getDelayed())[0].name == "delayed"
    assert await queue.getCountsPerPriority([0, 7]) == {"0": 1, "7": 1}


async def jobs_run_in_order_and_their_results_are_kept(stage):
    queue = stage.queue()
    seen = []

    async def work(job, token):
        seen.append(job.data["n"])
        return {"twice": job.data["n"] * 2}

    worker = stage.worker(work)
    done = heard(worker, "completed", 30)
    await queue.addBulk([{"name": "x", "data": {"n": n}} for n in range(30)])
    await done
    assert seen == list(range(30))
    job = await queue.getJob("30")
    assert job.returnvalue == {"twice": 58}
    assert job.finishedOn >= job.processedOn >= job.timestamp
    assert (await queue.getJobCounts("completed", "active", "wait")) == {"completed": 30, "active": 0, "wait": 0}




async def many_jobs_share_a_worker_up_to_its_concurrency(stage):
    queue = stage.queue()
    running = most = 0

    async def work(job, token):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.2)
        running -= 1

    worker = stage.worker(work, concurrency=5)
    done = heard(worker, "completed", 25)
    await queue.addBulk([{"name": "x", "data": {}} for _ in range(25)])
    await done
    assert most == 5


async def a_failing_job_is_tried_again_with_back_off(stage):
    queue = stage.queue()
    starts = []

    async def work(job, token):
        starts.append(time.time())
        if len(starts) < 3:
            raise ValueError(f"try {len(starts)}")
        return "made it"

    worker = stage.worker(work)
    done = heard(worker, "completed")
    await queue.add("x", {}, {"attempts": 5, "backoff": {"type": "exponential", "delay": 100}})
    await done
    assert starts[1] - starts[0] >= 0.095
    assert starts[2] - starts[1] >= 0.195
    job = await queue.getJob("1")
    assert job.attemptsMade == 3
    assert job.returnvalue == "made it"


async def an_unrecoverable_error_ends_the_attempts(stage):
    queue = stage.queue()

    async def work(job, token):
        raise UnrecoverableError("for good")

    worker = stage.worker(work)
    failed = heard(worker, "failed")
    await queue.add("x", {}, {"attempts": 5})
    await failed
    await eventually(lambda: queue.getFailedCount())
    job = await queue.getJob("1")
    assert job.failedReason == "for good"
    assert job.attemptsMade == 1


async def delayed_jobs_start_when_due_in_order(stage):
    queue = stage.queue()
    seen = []

    async def work(job, token):
        seen.append((job.data["delay"], time.time() * 1000 - job.timestamp - job.data["delay"]))

    worker = stage.worker(work)
    done = heard(worker, "completed", 5)
    delays = [400, 100, 300, 200, 50]
    await queue.addBulk([{"name": "x", "data": {"delay": d}, "opts": {"delay": d}} for d in delays])
    await done
    assert [delay for delay, _ in seen] == sorted(delays)
    assert all(-2 <= late < 10_000 for _, late in seen), seen


async def a_job_puts_itself_off(stage):
    queue = stage.queue()
    runs = 0

    async def work(job, token):
        nonlocal runs
        runs += 1
        if runs == 1:
            await job.moveToDelayed(round(time.time() * 1000) + 150, token)
            raise DelayedError()
        return runs

    worker = stage.worker(work)
    done = heard(worker, "completed")
    await queue.add("x", {})
    await done
    assert runs == 2


async def a_paused_queue_gives_nothing_out(stage):
    queue = stage.queue()
    await queue.pause()
    assert await queue.isPaused() is True

    async def work(job, token):
        return "ran"

    worker = stage.worker(work)
    done = heard(worker, "completed")
    await queue.add("x", {})
    await asyncio.sleep(0.2)
    assert await queue.getCompletedCount() == 0
    await queue.resume()
    await done
    assert await queue.isPaused() is False


async def jobs_of_higher_priority_go_first(stage):
    queue = stage.queue()
    for name, priority in [("low", 10), ("a", 2), ("b", 2), ("top", 1)]:
        await queue.add(name, {}, {"priority": priority})
    low = await queue.getJob("1")
    await low.changePriority({"priority": 1})
    order = []

    async def work(job, token):
        order.append(job.name)

    worker = stage.worker(work)
    await heard(worker, "completed", 4)
    assert order == ["top", "low", "a", "b"]


async def data_progress_and_logs_are_updated(stage):
    queue = stage.queue()
    job = await queue.add("x", {"v": 1})
    await job.updateData({"v": 2})
    await job.updateProgress({"done": 50})
    for n in range(3):
        await job.log(f"line {n}")
    read = await queue.getJob(job.id)
    assert read.data == {"v": 2}
    assert read.progress == {"done": 50}
    assert (await queue.getJobLogs(job.id))["logs"] == ["line 0", "line 1", "line 2"]


async def finished_jobs_are_kept_retried_cleaned_and_obliterated(stage):
    queue = stage.queue()

    async def work(job, token):
        if job.data.get("bad"):
            raise ValueError("bad")

    worker = stage.worker(work)
    done, failed = heard(worker, "completed", 6), heard(worker, "failed", 3)
    await queue.addBulk(
        [{"name": "x", "data": {}, "opts": {"removeOnComplete": 2}} for _ in range(6)]
        + [{"name": "x", "data": {"bad": True}} for _ in range(3)]
    )
    await done
    await failed
    await eventually(lambda: _is(queue.getCompletedCount(), 2))
    await eventually(lambda: _is(queue.getFailedCount(), 3))
    await worker.close(force=True)
    await queue.retryJobs({"count": 2})
    assert await queue.getWaitingCount() == 3
    assert len(await queue.clean(0, 0, "completed")) == 2
    await queue.drain()
    assert await queue.getWaitingCount() == 0
    await queue.add("x", {}, {"delay": 60_000})
    await queue.promoteJobs()
    assert await queue.getWaitingCount() == 1
    await queue.pause()
    await queue.obliterate(force=True)
    client = stage.raw()
    assert await client.keys(stage.key("*")) == []
    await client.aclose()


async def a_deduplicated_job_is_added_once(stage):
    queue = stage.queue()
    first = await queue.add("x", {"v": 1}, {"deduplication": {"id": "same", "ttl": 5000}})
    second = await queue.add("x", {"v": 2}, {"deduplication": {"id": "same", "ttl": 5000}})
    assert second.id == first.id
    assert await queue.getDeduplicationJobId("same") == first.id
    assert await queue.getWaitingCount() == 1


async def the_rate_and_the_concurrency_of_a_queue_are_kept(stage):
    queue = stage.queue()
    await queue.setGlobalConcurrency(2)
    assert await queue.getGlobalConcurrency() == 2
    await queue.setGlobalRateLimit(50, 1000)
    assert await queue.getGlobalRateLimit() == {"max": 50, "duration": 1000}
    hand = stage.worker(None)
    await queue.addBulk([{"name": "x", "data": {}} for _ in range(3)])
    jobs = [await hand.getNextJob("token") for _ in range(2)]
    assert await queue.getJobCounts("active", "wait") == {"active": 2, "wait": 1}
    await jobs[0].moveToCompleted(None, "token")
    assert (await hand.getNextJob("token")).id == "3"
    await queue.removeGlobalConcurrency()
    assert await queue.getGlobalConcurrency() is None
    await queue.removeGlobalRateLimit()
    await queue.rateLimit(60_000)
    assert 50_000 < await queue.getRateLimitTtl() <= 60_000
    assert await queue.removeRateLimitKey() == 1


async def a_stalled_job_is_taken_up_again(stage):
    queue = stage.queue()
    hand = stage.worker(None, lockDuration=200, stalledInterval=60_000)
    await queue.add("x", {})
    assert (await hand.getNextJob("dead")).id == "1"

    async def work(job, token):
        return "rescued"

    worker = stage.worker(work, stalledInterval=200)
    await heard(worker, "completed")
    assert (await queue.getJob("1")).returnvalue == "rescued"


async def a_scheduler_repeats_and_is_removed(stage):
    queue = stage.queue()
    seen = []

    async def work(job, token):
        seen.append(job.data)

    stage.worker(work)
    await queue.upsertJobScheduler("beat", {"every": 200}, "tick", {"n": 1})
    await eventually(lambda: len(seen) >= 3)
    assert seen[0] == {"n": 1}
    scheduler = await queue.getJobScheduler("beat")
    assert scheduler["every"] == 200
    assert await queue.getJobSchedulersCount() == 1
    # The script's own answer: 0 is removed, 1 is that there was none.
    assert await queue.removeJobScheduler("beat") == 0
    assert await queue.removeJobScheduler("beat") == 1
    assert await queue.getJobSchedulers() == []


async def the_life_of_a_job_is_told_by_events(stage):
    queue = stage.queue()
    events = stage.events()
    told = []
    for event in ["added", "waiting", "active", "progress", "completed"]:
        events.on(event, lambda args, id, event=event: told.append((event, args["jobId"])))
    finished = heard(events, "completed")

    async def work(job, token):
        await job.updateProgress(50)
        return {"v": 1}

    stage.worker(work)
    await queue.add("x", {}, {"jobId": "a"})
    ((args, _),) = await finished
    assert args["returnvalue"] == {"v": 1}
    assert told == [(event, "a") for event in ["added", "waiting", "active", "progress", "completed"]]


async def the_workers_are_found_by_name(stage):
    queue = stage.queue()

    async def work(job, token):
        return None

    worker = stage.worker(work, name="press-1")
    found = await eventually(lambda: queue.get_workers())
    assert any(one["rawname"].endswith(":w:press-1") for one in found), found
    assert found[0]["addr"]
    await worker.close(force=True)
    await eventually(lambda: _is(queue.get_workers_count(), 0))


@pytest.mark.parametrize("protocol", [2, 3])
async def both_protocols_of_redis_py_read_the_same(stage, protocol):
    import redis.asyncio as redis
    from conftest import server_url

    client = redis.from_url(server_url(), decode_responses=True, protocol=protocol)
    try:
        key = stage.key("k")
        async with client.pipeline(transaction=True) as pipe:
            pipe.hset(key + "h", mapping={"a": "1", "b": "2"}).zadd(key + "z", {"x": 1.5, "y": 2}).sadd(key + "s", "m")
            pipe.xadd(key + "x", {"f": "v"}).set(key, "v", px=5000).get(key)
            results = await pipe.execute()
        assert results[0] == 2 and results[-1] == "v"
        assert await client.hgetall(key + "h") == {"a": "1", "b": "2"}
        assert [tuple(pair) for pair in await client.zrange(key + "z", 0, -1, withscores=True)] == [("x", 1.5), ("y", 2.0)]
        assert await client.smembers(key + "s") == {"m"}
        assert await client.bzpopmin(key + "none", 0.01) is None
        assert list(await client.bzpopmin(key + "z", 1)) == [key + "z", "x", 1.5]
        script = client.register_script("return {KEYS[1], ARGV[1]}")
        assert await script(keys=[key], args=["a"]) == [key, "a"]
        info = await client.info()
        assert info["maxmemory_policy"] == "noeviction"
        assert info["redis_version"] >= "6.2"
        assert isinstance(info["used_memory"], int)
        assert isinstance(info["connected_clients"], int)
        names = [line["name"] for line in await client.client_list()]
        assert isinstance(names, list)
        assert (await client.config_get("maxmemory-policy")) == {"maxmemory-policy": "noeviction"}
        async with client.pubsub() as listener:
            await listener.subscribe(key + "c")
            await listener.psubscribe(key + "p*")
            await eventually(lambda: _subscribed(client, key + "c"))
            await client.publish(key + "c", "hello")
            await client.publish(key + "p1", "there")
            got = []
            while len(got) < 2:
                message = await listener.get_message(ignore_subscribe_messages=True, timeout=5)
                if message:
                    got.append((message["type"], message["data"]))
            assert got == [("message", "hello"), ("pmessage", "there")]
        async with client.pipeline(transaction=True) as pipe:
            await pipe.watch(key)
            await client.set(key, "other")
            pipe.multi()
            pipe.set(key, "mine")
            with pytest.raises(redis.WatchError):
                await pipe.execute()
    finally:
        await client.aclose()


async def _is(awaitable, value):
    found = await awaitable
    assert found == value, found
    return True


async def _subscribed(client, channel):
    return dict(await client.pubsub_numsub(channel)).get(channel) == 1

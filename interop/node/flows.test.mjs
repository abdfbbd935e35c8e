// Flows: parents that wait for children, in other queues, with every way a child can end.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, heard, stage } from './harness.mjs';

const child = (data, opts, more) => ({ name: 'child', queueName: 'children', data, opts, ...more });

test('a parent runs after its children and reads their values', async t => {
  const s = stage(t);
  const events = await s.events({}, 'parents');
  const tree = await s.flow().add({
    name: 'parent', queueName: 'parents', data: { p: 1 },
    children: [child({ n: 1 }), child({ n: 2 }), { name: 'other', queueName: 'others', data: { n: 3 } }],
  });
  assert.equal(tree.children.length, 3);
  assert.equal(await tree.job.getState(), 'waiting-children');
  assert.equal((await tree.job.getDependencies()).unprocessed.length, 3);
  s.worker(async job => job.data.n * 10, {}, 'children');
  s.worker(async job => ({ n: job.data.n }), {}, 'others');
  s.worker(async job => job.getChildrenValues(), {}, 'parents');
  const values = await tree.job.waitUntilFinished(events, 60_000);
  const [one, two, three] = tree.children.map(node => `${node.job.queueQualifiedName}:${node.job.id}`);
  assert.deepEqual(values, { [one]: 10, [two]: 20, [three]: { n: 3 } });
  const { processed, unprocessed } = await tree.job.getDependencies();
  assert.deepEqual(processed, values);
  assert.deepEqual(unprocessed, []);
  assert.deepEqual(await tree.job.getDependenciesCount(), { processed: 3, unprocessed: 0, failed: 0, ignored: 0 });
});

test('a deep tree is added whole, read back whole, and finishes from the leaves', async t => {
  const s = stage(t);
  const queue = s.queue();
  const events = await s.events();
  const flow = s.flow();
  const node = depth => ({ name: `level-${depth}`, queueName: s.name, data: { depth }, opts: depth ? {} : { priority: 1 }, children: depth < 4 ? [node(depth + 1), node(depth + 1)] : undefined });
  const tree = await flow.add(node(0));
  const read = await flow.getFlow({ id: tree.job.id, queueName: s.name });
  const count = n => 1 + (n.children ?? []).reduce((sum, c) => sum + count(c), 0);
  assert.equal(count(read), 31);
  assert.equal(count(await flow.getFlow({ id: tree.job.id, queueName: s.name, depth: 2 })), 3);
  assert.equal(count(await flow.getFlow({ id: tree.job.id, queueName: s.name, maxChildren: 1 })) <= 31, true);
  assert.deepEqual(await queue.getJobCounts('wait', 'waiting-children'), { wait: 16, 'waiting-children': 15 });
  const order = [];
  s.worker(async job => (order.push(job.data.depth), Object.values(await job.getChildrenValues()).reduce((a, b) => a + b, 1)), { concurrency: 4 });
  assert.equal(await tree.job.waitUntilFinished(events, 60_000), 31);
  assert.equal(order.length, 31);
  assert.equal(order.at(-1), 0);
});

test('several flows are added in one transaction', async t => {
  const s = stage(t);
  const trees = await s.flow().addBulk(Array.from({ length: 20 }, (_, n) => ({ name: `p${n}`, queueName: 'parents', children: [child({ n }), child({ n })] })));
  assert.equal(trees.length, 20);
  assert.equal(await s.queue({}, 'children').getWaitingCount(), 40);
  assert.equal(await s.queue({}, 'parents').getWaitingChildrenCount(), 20);
});

test('options of the queues are given with the flow', async t => {
  const s = stage(t);
  const { children } = await s.flow().add(
    { name: 'p', queueName: 'parents', children: [child({}), child({}, { attempts: 7 })] },
    { queuesOptions: { children: { defaultJobOptions: { attempts: 4, removeOnComplete: true } } } },
  );
  assert.deepEqual(children.map(c => c.job.opts.attempts), [4, 7]);
});

test('a failing child fails its parents, all the way up', async t => {
  const s = stage(t);
  const events = await s.events({}, 'parents');
  const tree = await s.flow().add({
    name: 'top', queueName: 'parents',
    children: [child({ fine: true }), { name: 'middle', queueName: 'middles', opts: { failParentOnFailure: true }, children: [child({ bad: true }, { failParentOnFailure: true })] }],
  });
  s.worker(async job => { if (job.data.bad) throw new Error('bad child'); }, {}, 'children');
  s.worker(async () => 'middle', {}, 'middles');
  s.worker(async () => 'top', {}, 'parents');
  await assert.rejects(tree.job.waitUntilFinished(events, 60_000), /failed/);
  const middle = tree.children[1].job;
  await eventually(async () => assert.equal(await middle.getState(), 'failed'));
  assert.equal(await tree.job.getState(), 'failed');
  assert.match((await s.queue({}, 'parents').getJob(tree.job.id)).failedReason, /child .* failed/);
  assert.deepEqual((await tree.job.getDependenciesCount()).failed, 1);
  assert.equal((await tree.job.getDependencies()).failed.length, 1);
});

test('a failing child may be ignored, and is still told about', async t => {
  const s = stage(t);
  const events = await s.events({}, 'parents');
  const tree = await s.flow().add({ name: 'p', queueName: 'parents', children: [child({ bad: true }, { ignoreDependencyOnFailure: true }), child({ n: 1 })] });
  s.worker(async job => { if (job.data.bad) throw new Error('ignored reason'); return job.data.n; }, {}, 'children');
  s.worker(async job => [await job.getChildrenValues(), await job.getIgnoredChildrenFailures()], {}, 'parents');
  const [values, ignored] = await tree.job.waitUntilFinished(events, 60_000);
  assert.deepEqual(Object.values(values), [1]);
  assert.deepEqual(Object.values(ignored), ['ignored reason']);
  assert.deepEqual(await tree.job.getDependenciesCount(), { processed: 1, unprocessed: 0, failed: 0, ignored: 1 });
});

test('a failing child may be taken out of the flow', async t => {
  const s = stage(t);
  const events = await s.events({}, 'parents');
  const tree = await s.flow().add({ name: 'p', queueName: 'parents', children: [child({ bad: true }, { removeDependencyOnFailure: true }), child({ n: 1 })] });
  s.worker(async job => { if (job.data.bad) throw new Error('x'); return job.data.n; }, {}, 'children');
  s.worker(async job => Object.values(await job.getChildrenValues()), {}, 'parents');
  assert.deepEqual(await tree.job.waitUntilFinished(events, 60_000), [1]);
  assert.deepEqual(await tree.job.getDependenciesCount(), { processed: 1, unprocessed: 0, failed: 0, ignored: 0 });
});

test('a failing child may let the parent go on at once', async t => {
  const s = stage(t);
  const events = await s.events({}, 'parents');
  const tree = await s.flow().add({
    name: 'p', queueName: 'parents',
    children: [child({ bad: true }, { continueParentOnFailure: true }), { name: 'never', queueName: 'idle', data: {} }],
  });
  s.worker(async () => { throw new Error('early'); }, {}, 'children');
  s.worker(async job => {
    const failures = Object.values(await job.getIgnoredChildrenFailures());
    await job.removeUnprocessedChildren();
    return failures;
  }, {}, 'parents');
  assert.deepEqual(await tree.job.waitUntilFinished(events, 60_000), ['early']);
  assert.equal(await s.queue({}, 'idle').count(), 0);
});

test('dependencies of a parent with 2,000 children come in pages, each child once', async t => {
  const s = stage(t);
  const children = Array.from({ length: 2000 }, (_, n) => child({ n }));
  const { job } = await s.flow().add({ name: 'p', queueName: 'parents', children });
  const walk = async kind => {
    const seen = [];
    let cursor = 0, pages = 0;
    do {
      const page = await job.getDependencies({ [kind]: { cursor, count: 50 } });
      const found = Array.isArray(page[kind]) ? page[kind] : Object.keys(page[kind]);
      // COUNT is a hint, but a page must stay a page.
      assert.ok(found.length <= 200, `${found.length} in one page`);
      seen.push(...found);
      cursor = Number(page[`next${kind[0].toUpperCase()}${kind.slice(1)}Cursor`]);
      assert.ok(++pages < 1000);
    } while (cursor !== 0);
    return [seen, pages];
  };
  const [unprocessed, pages] = await walk('unprocessed');
  assert.equal(new Set(unprocessed).size, 2000);
  assert.ok(pages >= 10, `${pages} pages`);
  const worker = s.worker(async job => job.data.n, { concurrency: 50 }, 'children');
  await heard(worker, 'completed', 1200, 60_000);
  await worker.close();
  const counts = await job.getDependenciesCount();
  assert.equal(counts.processed + counts.unprocessed, 2000);
  assert.ok(counts.processed >= 1200);
  assert.equal(new Set((await walk('processed'))[0]).size, counts.processed);
  assert.equal(new Set((await walk('unprocessed'))[0]).size, counts.unprocessed);
  const queue = s.queue({}, 'parents');
  const first = await queue.getDependencies(job.id, 'processed', 0, 24);
  const second = await queue.getDependencies(job.id, 'processed', 25, 49);
  assert.equal(first.items.length, 25);
  assert.equal(first.total, counts.processed);
  assert.equal(new Set([...first.items, ...second.items].map(item => item.id)).size, 50, 'the order is stable between calls');
});

test('a small number of dependencies comes in one page and in the order they came', async t => {
  const s = stage(t);
  const { job, children } = await s.flow().add({ name: 'p', queueName: 'parents', children: Array.from({ length: 10 }, (_, n) => child({ n })) });
  const worker = s.worker(async job => job.data.n, { concurrency: 1 }, 'children');
  await heard(worker, 'completed', 10);
  const page = await job.getDependencies({ processed: { cursor: 0, count: 3 } });
  assert.deepEqual(Object.keys(page.processed), children.map(c => `${s.prefix}:children:${c.job.id}`));
  assert.equal(Number(page.nextProcessedCursor), 0);
  const { items, total } = await s.queue({}, 'parents').getDependencies(job.id, 'processed', 3, 6);
  assert.equal(total, 10);
  assert.deepEqual(items.map(item => item.v), [3, 4, 5, 6]);
});

test('children are removed with their parent, unless one is running', async t => {
  const s = stage(t);
  const queue = s.queue({}, 'parents');
  const children = s.queue({}, 'children');
  const flow = s.flow();
  const tree = { name: 'p', queueName: 'parents', children: [child({ n: 1 }), child({ n: 2 })] };
  const { job } = await flow.add(tree);
  await job.remove({ removeChildren: true });
  assert.equal(await children.count(), 0);
  assert.equal(await queue.count(), 0);
  const second = await flow.add(tree);
  const worker = s.worker(null, {}, 'children');
  await worker.getNextJob('token');
  await assert.rejects(second.job.remove(), /locked/);
  assert.equal(await second.job.getState(), 'waiting-children');
});

test('a child taken out by hand frees its parent', async t => {
  const s = stage(t);
  const { job, children } = await s.flow().add({ name: 'p', queueName: 'parents', children: [child({ n: 1 }), child({ n: 2 })] });
  assert.equal(await children[0].job.removeChildDependency(), true);
  assert.equal(await job.getState(), 'waiting-children');
  await children[1].job.remove();
  await eventually(async () => assert.equal(await job.getState(), 'waiting'));
});

test('a parent cannot be finished before its children', async t => {
  const s = stage(t);
  const [parents, children] = [s.queue({}, 'parents'), s.queue({}, 'children')];
  const parent = await parents.add('p', {});
  await children.add('c', {}, { parent: { id: parent.id, queue: parent.queueQualifiedName } });
  const job = await s.worker(null, {}, 'parents').getNextJob('token');
  await assert.rejects(job.moveToCompleted(1, 'token', false), /has pending dependencies\. moveToFinished/);
  await assert.rejects(children.add('c', {}, { parent: { id: 'nobody', queue: parent.queueQualifiedName } }), /Missing key for parent job/);
});

test('a child added twice under one id counts once for its parent', async t => {
  const s = stage(t);
  const events = await s.events({}, 'parents');
  const { job } = await s.flow().add({ name: 'p', queueName: 'parents', children: [child({ n: 1 }, { jobId: 'same' }), child({ n: 2 }, { jobId: 'same' })] });
  s.worker(async job => job.data.n, {}, 'children');
  s.worker(async job => Object.values(await job.getChildrenValues()), {}, 'parents');
  assert.deepEqual(await job.waitUntilFinished(events, 60_000), [1]);
});

test('delayed and prioritized parents go where they belong after their children', async t => {
  const s = stage(t);
  const flow = s.flow();
  const later = await flow.add({ name: 'later', queueName: 'parents', opts: { delay: 60_000 }, children: [child({})] });
  const ranked = await flow.add({ name: 'ranked', queueName: 'parents', opts: { priority: 3 }, children: [child({})] });
  const worker = s.worker(async () => {}, {}, 'children');
  await heard(worker, 'completed', 2);
  await eventually(async () => assert.equal(await later.job.getState(), 'delayed'));
  await eventually(async () => assert.equal(await ranked.job.getState(), 'prioritized'));
});

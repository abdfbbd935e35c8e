// Workers that wait: woken at once, served in order, and never costing another worker its wake-up.
//
// BullMQ wakes a worker with a marker in a sorted set that BZPOPMIN pops. A server that gives the marker to a
// connection that is gone makes a worker sleep until its drain delay is over: here that is a minute, so a lost
// marker fails a test by its deadline.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { connect } from 'node:net';
import { test } from 'node:test';
import { blocked, clientsIn, connection, eventually, heard, once, pause, stage } from './harness.mjs';

const commandOf = (...words) => `*${words.length}\r\n${words.map(w => `$${Buffer.byteLength(w)}\r\n${w}\r\n`).join('')}`;

/** A bare socket called `name` that has sent `words` and waits. */
async function hanging(raw, name, ...words) {
  const { host, port, path, password } = connection();
  const socket = connect(path ? { path } : { host, port });
  socket.on('error', () => {}).resume();
  await once(socket, 'connect');
  if (password) socket.write(commandOf('AUTH', password));
  socket.write(commandOf('CLIENT', 'SETNAME', name) + commandOf(...words));
  await blocked(raw, 1, words[0].toLowerCase(), name);
  return socket;
}

/** Waits until the server has noticed that `name` is gone. Until then even Redis gives it what comes. */
const forgotten = (raw, name) => eventually(async () => !clientsIn(await raw.client('LIST')).some(c => c.name === name), 20_000);

test('a waiting worker is woken at once', async t => {
  const s = stage(t);
  const queue = s.queue();
  const worker = s.worker(async job => Date.now() - job.timestamp);
  const raw = s.raw();
  const waits = [];
  for (let n = 0; n < 25; n++) {
    await blocked(raw, 1, 'bzpopmin', s.prefix);
    const done = heard(worker, 'completed');
    await queue.add('x', {});
    waits.push((await done)[0][1]);
  }
  waits.sort((a, b) => a - b);
  assert.ok(waits[12] < 250, `median ${waits[12]} ms of ${waits}`);
  assert.ok(waits[24] < 10_000, `worst ${waits[24]} ms`);
});

test('many waiting workers share the work and none sleeps', async t => {
  const s = stage(t);
  const queue = s.queue();
  const workers = Array.from({ length: 12 }, (_, n) => s.worker(async () => pause(150).then(() => n)));
  const raw = s.raw();
  await blocked(raw, 12, 'bzpopmin', s.prefix);
  const busy = new Set();
  for (const [n, worker] of workers.entries()) worker.on('completed', () => busy.add(n));
  await queue.addBulk(Array.from({ length: 48 }, () => ({ name: 'x', data: {} })));
  await eventually(async () => assert.equal(await queue.getCompletedCount(), 48));
  assert.equal(busy.size, 12, 'one marker wakes the next worker');
});

test('blocked clients are served first come, first served', async t => {
  const s = stage(t);
  const raw = s.raw();
  const waiting = [];
  const answered = [];
  for (let n = 0; n < 8; n++) {
    const client = s.raw({ connectionName: `${s.prefix}-${n}` });
    waiting.push(client.bzpopmin(s.key('z'), 30).then(popped => answered.push([n, popped[1]])));
    await blocked(raw, n + 1, 'bzpopmin', s.prefix);
  }
  await raw.zadd(s.key('z'), ...Array.from({ length: 8 }, (_, n) => [n, `m${n}`]).flat());
  await Promise.all(waiting);
  assert.deepEqual(answered.sort(), Array.from({ length: 8 }, (_, n) => [n, `m${n}`]));
  assert.equal(await raw.exists(s.key('z')), 0);
});

test('a blocked client that disconnects, closes half or is destroyed takes nothing with it', async t => {
  const s = stage(t);
  const raw = s.raw();
  for (const leave of ['end', 'destroy', 'resetAndDestroy']) {
    const [left, stays] = [`${s.prefix}-left-${leave}`, `${s.prefix}-stays-${leave}`];
    const gone = await hanging(raw, left, 'BZPOPMIN', s.key('z'), '60');
    const popped = s.raw({ connectionName: stays }).bzpopmin(s.key('z'), 60);
    await blocked(raw, 1, 'bzpopmin', stays);
    gone[leave]();
    await forgotten(raw, left);
    await raw.zadd(s.key('z'), 1, leave);
    assert.deepEqual(await popped, [s.key('z'), leave, '1']);
    gone.destroy();
  }
});

test('the same for lists', async t => {
  const s = stage(t);
  const raw = s.raw();
  for (const [command, ...rest] of [['BLPOP', s.key('l'), '60'], ['BRPOP', s.key('l'), '60'], ['BLMOVE', s.key('l'), s.key('m'), 'LEFT', 'RIGHT', '60']]) {
    const [left, stays] = [`${s.prefix}-left-${command}`, `${s.prefix}-stays-${command}`];
    const gone = await hanging(raw, left, command, ...rest);
    const popped = s.raw({ connectionName: stays }).blpop(s.key('l'), 60);
    await blocked(raw, 1, 'blpop', stays);
    gone.destroy();
    await forgotten(raw, left);
    await raw.rpush(s.key('l'), command);
    assert.deepEqual(await popped, [s.key('l'), command]);
    assert.equal(await raw.exists(s.key('m')), 0);
  }
});

test('a blocked client that the server kills swallows no marker', async t => {
  const s = stage(t);
  const queue = s.queue();
  const raw = s.raw();
  const worker = s.worker(async () => 'ran');
  await blocked(raw, 1, 'bzpopmin', s.prefix);
  for (let n = 0; n < 5; n++) {
    // A stranger waits in front of the worker.
    await worker.pause();
    const name = `stranger-${s.prefix}-${n}`;
    await hanging(raw, name, 'BZPOPMIN', s.key(s.name, 'marker'), '60');
    worker.resume();
    const [stranger] = await blocked(raw, 1, 'bzpopmin', name);
    await blocked(raw, 1, 'bzpopmin', s.prefix);
    assert.equal(await raw.client('KILL', 'ID', stranger.id), 1);
    const done = heard(worker, 'completed');
    await queue.add('x', {});
    await done;
  }
});

test('a worker process killed while it waits leaves the next job to the others', async t => {
  const s = stage(t);
  const queue = s.queue();
  const raw = s.raw();
  for (let n = 0; n < 3; n++) {
    const child = fork(new URL('./processes/waiting-worker.mjs', import.meta.url), [s.prefix, s.name], { env: process.env });
    t.after(() => child.kill('SIGKILL'));
    await once(child, 'message');
    await blocked(raw, 1, 'bzpopmin', s.prefix);
    const died = once(child, 'exit');
    child.kill('SIGKILL');
    await died;
    const job = await queue.add('x', { n });
    const worker = s.worker(async () => 'ran by the survivor');
    const [[done, result]] = await heard(worker, 'completed');
    assert.equal(done.id, job.id);
    assert.equal(result, 'ran by the survivor');
    await worker.close();
  }
});

test('a worker whose connections drop comes back and goes on', async t => {
  const s = stage(t);
  const queue = s.queue();
  const raw = s.raw();
  const worker = s.worker(async job => job.data.n);
  await blocked(raw, 1, 'bzpopmin', s.prefix);
  for (const leave of ['destroy', 'end']) {
    for (const client of [await worker.getBackend().client, await worker.getBackend().blockingClient, await queue.getBackend().client]) {
      client.stream[leave]();
    }
    const done = heard(worker, 'completed', 3);
    await queue.addBulk([1, 2, 3].map(n => ({ name: 'x', data: { n } })));
    assert.deepEqual((await done).map(([, n]) => n), [1, 2, 3]);
  }
});

test('blocking ends after its time, to a few milliseconds, and in fractions', async t => {
  const s = stage(t);
  const raw = s.raw();
  for (const seconds of [0.001, 0.01, 0.25, 1]) {
    const began = performance.now();
    assert.equal(await raw.bzpopmin(s.key('none'), seconds), null);
    const took = performance.now() - began;
    assert.ok(took >= seconds * 1000 - 1 && took < seconds * 1000 + 5000, `${took} ms for ${seconds} s`);
  }
  const began = performance.now();
  assert.equal(await raw.xread('BLOCK', 120, 'STREAMS', s.key('none'), '$'), null);
  assert.ok(performance.now() - began >= 118);
  await assert.rejects(raw.bzpopmin(s.key('none'), -1), /timeout is negative/);
  await assert.rejects(raw.bzpopmin(s.key('none'), 'soon'), /timeout is not a float or out of range/);
});

test('inside MULTI and scripts nothing blocks, and waiters are served after the whole', async t => {
  const s = stage(t);
  const raw = s.raw();
  const waiter = s.raw({ connectionName: `${s.prefix}-w` });
  assert.deepEqual(await raw.multi().bzpopmin(s.key('z'), 5).exec(), [[null, null]]);
  const popped = waiter.bzpopmin(s.key('z'), 30);
  await blocked(raw, 1, 'bzpopmin', `${s.prefix}-w`);
  // Added and taken back within one script: the waiter must see neither.
  await raw.eval("redis.call('ZADD', KEYS[1], 1, 'a') redis.call('ZREM', KEYS[1], 'a')", 1, s.key('z'));
  await raw.multi().zadd(s.key('z'), 1, 'b').zrem(s.key('z'), 'b').exec();
  // Three added in one transaction: the waiter gets the least of them.
  await raw.multi().zadd(s.key('z'), 9, 'nine').zadd(s.key('z'), 5, 'five').zadd(s.key('z'), 7, 'seven').exec();
  assert.equal((await popped)[1], 'five');
  assert.equal(await raw.zcard(s.key('z')), 2);
});

test('XREAD from $ sees what comes after the call only', async t => {
  const s = stage(t);
  const raw = s.raw();
  const reader = s.raw({ connectionName: `${s.prefix}-r` });
  await raw.xadd(s.key('x'), '*', 'n', 'before');
  const read = reader.xread('BLOCK', 10_000, 'STREAMS', s.key('x'), '$');
  await blocked(raw, 1, 'xread', `${s.prefix}-r`);
  await raw.multi().xadd(s.key('x'), '*', 'n', '1').xadd(s.key('x'), '*', 'n', '2').exec();
  const [[key, entries]] = await read;
  assert.equal(key, s.key('x'));
  assert.deepEqual(entries.map(([, fields]) => fields), [['n', '1'], ['n', '2']]);
});

test('a blocked client is dropped when its key changes its kind only at the next push', async t => {
  const s = stage(t);
  const raw = s.raw();
  const waiter = s.raw({ connectionName: `${s.prefix}-w` });
  const popped = waiter.bzpopmin(s.key('k'), 30);
  await blocked(raw, 1, 'bzpopmin', `${s.prefix}-w`);
  await raw.rpush(s.key('k'), 'a list');
  await raw.del(s.key('k'));
  await raw.zadd(s.key('k'), 3, 'found');
  assert.equal((await popped)[1], 'found');
});

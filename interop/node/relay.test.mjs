// BullMQ's relay: messages between nodes over inbox streams, sorted sets by name, and leases.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blocked, clientsIn, eventually, stage } from './harness.mjs';

test('messages reach whoever subscribed to their topic or a pattern', async t => {
  const s = stage(t);
  const [a, b] = [s.relay({ namespace: 'n' }), s.relay({ namespace: 'n' })];
  await Promise.all([a.waitUntilReady(), b.waitUntilReady()]);
  const got = [];
  await a.subscribe('jobs.*.cancel', m => void got.push(['one', m.topic, m.data]));
  await b.subscribe('jobs.>', m => void got.push(['any', m.topic, m.data]));
  await a.publish('jobs.7.cancel', { why: 'late' });
  await b.publish('jobs.8.start.now', 8);
  await eventually(() => got.length === 3);
  assert.deepEqual(got.sort(), [['any', 'jobs.7.cancel', { why: 'late' }], ['any', 'jobs.8.start.now', 8], ['one', 'jobs.7.cancel', { why: 'late' }]]);
  const counts = await a.getCounts();
  assert.equal(counts.nodes, 2);
  assert.equal((await a.getNodes()).length, 2);
  assert.equal((await a.getPatterns()).length, 2);
  assert.deepEqual(await a.getNamespaces(), ['n']);
});

test('a retained message waits for later subscribers, for its time', async t => {
  const s = stage(t);
  const relay = s.relay({ namespace: 'n' });
  await relay.waitUntilReady();
  await relay.publish('state', 'old', { retain: 60_000 });
  await relay.publish('state', 'new', { retain: 60_000 });
  await relay.publish('brief', 'gone', { retain: 50 });
  await new Promise(resolve => setTimeout(resolve, 80));
  const got = [];
  for (const topic of ['brief', 'state']) await relay.subscribe(topic, m => void got.push([m.topic, m.data, m.retained]));
  await eventually(() => got.length >= 1);
  assert.deepEqual(got, [['state', 'new', true]]);
  assert.equal((await relay.getRetained()).length, 1);
  assert.equal(await relay.deleteRetained('state'), true);
  assert.equal(await relay.deleteRetained('state'), false);
});

test('what is published while a reader is cut off is delivered when it is back', async t => {
  const s = stage(t);
  const [subscriber, publisher] = [s.relay({ namespace: 'n' }), s.relay({ namespace: 'n' })];
  await Promise.all([subscriber.waitUntilReady(), publisher.waitUntilReady()]);
  const got = [];
  await subscriber.subscribe('jobs.*', m => void got.push(m.data));
  const raw = s.raw();
  const connections = await eventually(async () => {
    const found = await subscriber.getNodeConnections(subscriber.nodeId);
    return found.length > 0 && found;
  });
  assert.ok(connections.length > 0);
  await blocked(raw, 1, 'xread');
  // This node's reader only: other tests run on the same server.
  const named = clientsIn(await raw.client('LIST')).filter(c => c.cmd === 'xread' && connections.some(own => String(own.id) === c.id));
  for (const { id } of named) assert.equal(await raw.client('KILL', 'ID', id), 1);
  for (let n = 0; n < 5; n++) await publisher.publish(`jobs.${n}`, n);
  await eventually(() => got.length === 5);
  assert.deepEqual(got, [0, 1, 2, 3, 4]);
});

test('a node that closes leaves only the message counter', async t => {
  const s = stage(t);
  const relay = s.relay({ namespace: 'n' });
  await relay.waitUntilReady();
  await relay.subscribe('a.*', () => {});
  await relay.publish('a.1', 'x');
  await relay.close();
  const left = (await s.raw().keys(s.key('*'))).map(key => key.split(':').at(-1)).sort();
  assert.ok(left.every(key => ['mid', 'layout', 'namespaces'].includes(key)), `${left}`);
});

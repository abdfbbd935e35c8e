// Ways to connect: both protocols, sockets, databases, passwords, names, prefixes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { clientsIn, connection, heard, optionsOf, stage } from './harness.mjs';

/** One job through a queue, a worker and a listener. */
async function life(s) {
  const events = await s.events();
  const queue = s.queue();
  const worker = s.worker(async job => ({ got: job.data }));
  const job = await queue.add('x', { n: 1.5, text: 'é' });
  assert.deepEqual(await job.waitUntilFinished(events, 60_000), { got: { n: 1.5, text: 'é' } });
  await worker.close();
  return queue;
}

for (const protocol of [2, 3]) {
  test(`a job's life over RESP${protocol}`, async t => {
    const s = stage(t, { connection: { protocol } });
    await life(s);
    const raw = s.raw();
    const [own] = clientsIn(await raw.client('LIST', 'ID', await raw.client('ID')));
    assert.equal(own.resp ?? `${protocol}`, `${protocol}`);
  });
}

test('both protocols give ioredis the same values', async t => {
  const s = stage(t);
  const [two, three] = [2, 3].map(protocol => s.raw({ protocol }));
  const k = name => s.key(name);
  await three.pipeline().set(k('s'), 'text').hset(k('h'), 'a', '1', 'b', 'two').sadd(k('u'), 'x').rpush(k('l'), 'a', 'b')
    .zadd(k('z'), 1.5, 'a', 3, 'b', 'inf', 'c', 1794880800000, 'd').xadd(k('x'), '1-1', 'f', 'v').exec();
  const reads = [
    c => c.get(k('s')), c => c.get(k('none')), c => c.hgetall(k('h')), c => c.hgetall(k('none')), c => c.hget(k('h'), 'none'),
    c => c.smembers(k('u')), c => c.lrange(k('l'), 0, -1), c => c.lpos(k('l'), 'none'),
    c => c.zrange(k('z'), 0, -1, 'WITHSCORES'), c => c.zscore(k('z'), 'a'), c => c.zscore(k('z'), 'd'), c => c.zscore(k('z'), 'none'), c => c.zrevrange(k('z'), 0, -1, 'WITHSCORES'),
    c => c.xrange(k('x'), '-', '+'), c => c.xread('STREAMS', k('x'), '0'), c => c.bzpopmin(k('none'), 0.01),
    c => c.exists(k('s')), c => c.type(k('z')), c => c.ttl(k('s')), c => c.hscan(k('h'), 0), c => c.sismember(k('u'), 'x'),
    c => c.eval("return {1, 'two', false, {3}, redis.call('HGETALL', KEYS[1]), redis.call('ZSCORE', KEYS[2], 'a')}", 2, k('h'), k('z')),
    c => c.eval('return nil', 0), c => c.eval('return true', 0), c => c.eval('return 3.99', 0), c => c.eval("return redis.status_reply('FINE')", 0),
    c => c.multi().hgetall(k('h')).zrange(k('z'), 0, 0, 'WITHSCORES').exec(),
    c => c.config('GET', 'maxmemory-policy'), c => c.script('EXISTS', 'f'.repeat(40)),
  ];
  for (const read of reads) assert.deepEqual(await read(two), await read(three), read.toString());
  assert.deepEqual(await two.zpopmin(k('z')), ['a', '1.5']);
  assert.deepEqual(await three.zpopmin(k('z')), ['b', '3']);
});

test('a job\'s life over a unix socket', { skip: !process.env.REDIS_SOCKET && 'REDIS_SOCKET is not set' }, async t => {
  await life(stage(t, { connection: { host: undefined, port: undefined, path: process.env.REDIS_SOCKET } }));
});

test('with a password: right, wrong and none', { skip: !process.env.REDIS_AUTH_URL && 'REDIS_AUTH_URL is not set' }, async t => {
  const locked = { path: undefined, ...optionsOf(process.env.REDIS_AUTH_URL) };
  await life(stage(t, { connection: locked }));
  for (const protocol of [2, 3]) {
    const tried = more => {
      const client = new Redis(connection({ ...locked, protocol, retryStrategy: null, maxRetriesPerRequest: 0, enableReadyCheck: false, lazyConnect: true, ...more }));
      t.after(() => client.disconnect());
      return new Promise((resolve, reject) => {
        // ioredis tells the server's words in an event and closes.
        client.on('error', reject);
        client.connect().then(() => client.get('x')).then(resolve, error => setTimeout(reject, 500, error));
      });
    };
    assert.equal(await tried({}), null);
    assert.equal(await tried({ username: 'default' }), null);
    await assert.rejects(tried({ password: 'wrong' }), /WRONGPASS|NOAUTH/);
    await assert.rejects(tried({ password: undefined }), /NOAUTH/);
    await assert.rejects(tried({ username: 'nobody' }), /WRONGPASS|NOAUTH/);
  }
});

test('a password where none is wanted is refused, and not fatal', async t => {
  const raw = stage(t).raw();
  if (connection().password) return t.skip('this server has a password');
  await assert.rejects(raw.auth('secret'), /ERR AUTH <password> called without any password configured for the default user/);
  assert.equal(await raw.ping(), 'PONG');
});

test('databases are apart, and a queue lives in the one it is given', async t => {
  const s = stage(t, { connection: { db: 5 } });
  await life(s);
  const [five, zero] = [s.raw(), s.raw({ db: 0 })];
  assert.ok((await five.keys(s.key('*'))).length > 0);
  assert.deepEqual(await zero.keys(s.key('*')), []);
  await zero.set(s.key('v'), 'zero');
  await zero.select(5);
  assert.equal(await zero.get(s.key('v')), null);
  await zero.select(0);
  assert.equal(await zero.getdel(s.key('v')), 'zero');
  await assert.rejects(five.select(99), /DB index is out of range/);
  await assert.rejects(five.select('x'), /invalid DB index|value is not an integer/);
  const [line] = clientsIn(await five.client('LIST', 'ID', await five.client('ID')));
  assert.equal(line.db, '5');
});

test('prefixes keep queues of one name apart', async t => {
  const [a, b] = [stage(t), stage(t)];
  const [one, two] = [a.queue({}, 'same'), b.queue({}, 'same')];
  await one.add('x', {});
  assert.equal(await one.getWaitingCount(), 1);
  assert.equal(await two.getWaitingCount(), 0);
  const braced = stage(t, { prefix: `{${a.prefix}}` });
  await life(braced);
});

test('ioredis\'s own key prefix is refused by BullMQ and works without it', async t => {
  const s = stage(t);
  const client = s.raw({ keyPrefix: `${s.prefix}:own:` });
  assert.throws(() => new Queue('x', { connection: client }), /does not support ioredis prefixes/);
  await client.set('k', 'v');
  assert.equal(await s.raw().get(s.key('own', 'k')), 'v');
});

test('one connection is shared by queues, listeners and workers', async t => {
  const s = stage(t);
  const shared = s.raw({ maxRetriesPerRequest: null });
  const queue = s.queue({ connection: shared });
  const events = await s.events({ connection: shared });
  const worker = s.worker(async () => 'shared', { connection: shared });
  const job = await queue.add('x', {});
  assert.equal(await job.waitUntilFinished(events, 60_000), 'shared');
  await worker.close();
  await events.close();
  await queue.close();
  assert.equal(await shared.ping(), 'PONG');
});

test('a connection\'s name and library are seen by the server', async t => {
  const s = stage(t);
  const raw = s.raw({ connectionName: 'printer:7' });
  assert.equal(await raw.client('GETNAME'), 'printer:7');
  const info = clientsIn(await raw.client('INFO'))[0];
  assert.equal(info.name, 'printer:7');
  assert.equal(info.id, String(await raw.client('ID')));
  await raw.client('SETNAME', '');
  assert.ok([null, ''].includes(await raw.client('GETNAME')));
  await assert.rejects(raw.client('SETNAME', 'with space'), /Client names cannot contain spaces, newlines or special characters/);
});

test('a closed port is refused, not waited for', async t => {
  const queue = new Queue('x', { connection: { host: '127.0.0.1', port: 1, retryStrategy: () => null } });
  queue.on('error', () => {});
  await assert.rejects(queue.waitUntilReady(), { code: 'ECONNREFUSED' });
  await queue.close();
});

test('300 connections are opened and closed at once', async t => {
  const s = stage(t);
  const clients = Array.from({ length: 300 }, () => s.raw());
  const answers = await Promise.all(clients.map((client, n) => client.incr(s.key('n')).then(() => client.echo(`${n}`))));
  assert.deepEqual(answers, clients.map((_, n) => `${n}`));
  assert.equal(await clients[0].get(s.key('n')), '300');
});

test('quit answers before it closes', async t => {
  const raw = stage(t).raw({ retryStrategy: null });
  await raw.set('unused', '1', 'PX', 1);
  const ended = heard(raw, 'end');
  assert.equal(await raw.quit(), 'OK');
  await ended;
});

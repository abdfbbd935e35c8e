// The server as ioredis sees it: transactions, scripts, pub/sub, pipelines, scans, big values, errors.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import { test } from 'node:test';
import { blocked, clientsIn, connection, eventually, fieldsIn, heard, once, stage } from './harness.mjs';

test('a transaction runs whole, in order, and tells each result', async t => {
  const s = stage(t);
  const raw = s.raw();
  const k = s.key('k');
  assert.deepEqual(await raw.multi().set(k, 1).incr(k).incrby(k, 5).get(k).exec(), [[null, 'OK'], [null, 2], [null, 7], [null, '7']]);
  const results = await raw.multi().set(k, 'text').incr(k).set(k, 'after').exec();
  assert.match(results[1][0].message, /ERR value is not an integer or out of range/);
  assert.equal(await raw.get(k), 'after', 'the commands after an error run');
  assert.deepEqual(await raw.multi().exec(), []);
});

test('a command that cannot be queued aborts the transaction', async t => {
  const s = stage(t);
  const raw = s.raw();
  await raw.call('MULTI');
  assert.equal(await raw.call('SET', s.key('k'), 1), 'QUEUED');
  await assert.rejects(raw.call('SET', s.key('k')), /ERR wrong number of arguments for 'set' command/);
  await assert.rejects(raw.call('NOSUCH', 'a', 'b'), /ERR unknown command 'NOSUCH', with args beginning with: 'a' 'b' ?/);
  await assert.rejects(raw.call('EXEC'), /EXECABORT Transaction discarded because of previous errors\./);
  assert.equal(await raw.exists(s.key('k')), 0);
  await assert.rejects(raw.call('EXEC'), /ERR EXEC without MULTI/);
  await assert.rejects(raw.call('DISCARD'), /ERR DISCARD without MULTI/);
  await raw.call('MULTI');
  await assert.rejects(raw.call('MULTI'), /ERR MULTI calls can not be nested/);
  await assert.rejects(raw.call('WATCH', 'x'), /ERR WATCH inside MULTI is not allowed/);
  assert.equal(await raw.call('DISCARD'), 'OK');
});

test('WATCH stops a transaction when another client was faster, also by expiry and deletion', async t => {
  const s = stage(t);
  const [one, two] = [s.raw(), s.raw()];
  const k = s.key('k');
  for (const disturb of [() => two.set(k, 'other'), () => two.del(k), () => two.pexpire(k, 1).then(() => new Promise(r => setTimeout(r, 20))), () => two.append(k, 'x'), () => two.multi().set(k, 1).exec(), () => two.eval("redis.call('SET', KEYS[1], 2)", 1, k)]) {
    await one.set(k, 'first');
    await one.watch(k);
    await disturb();
    assert.equal(await one.multi().set(k, 'mine').exec(), null, disturb.toString());
  }
  await one.set(k, 'first');
  await one.watch(k, s.key('other'));
  await two.get(k);
  assert.deepEqual(await one.multi().set(k, 'mine').exec(), [[null, 'OK']]);
  await one.watch(k);
  await two.set(k, 'x');
  await one.unwatch();
  assert.deepEqual(await one.multi().get(k).exec(), [[null, 'x']]);
  await one.watch(s.key('absent'));
  await two.set(s.key('absent'), 1);
  assert.equal(await one.multi().ping().exec(), null);
});

test('10,000 commands in one pipeline are answered in order', async t => {
  const s = stage(t);
  const raw = s.raw();
  const pipe = raw.pipeline();
  for (let n = 0; n < 10_000; n++) {
    if (n % 100 === 99) pipe.call('NOSUCH');
    else if (n % 3) pipe.rpush(s.key('l'), n);
    else pipe.set(s.key('v', n % 50), n);
  }
  const results = await pipe.exec();
  assert.equal(results.length, 10_000);
  let length = 0;
  for (const [n, [error, value]] of results.entries()) {
    if (n % 100 === 99) assert.match(error.message, /unknown command/);
    else if (n % 3) assert.equal(value, ++length);
    else assert.equal(value, 'OK');
  }
  const elements = await raw.lrange(s.key('l'), 0, -1);
  assert.equal(elements.length, length);
  assert.ok(elements.every((value, n) => n === 0 || Number(value) > Number(elements[n - 1])));
});

test('a transaction of 10,000 commands is one step for others', async t => {
  const s = stage(t);
  const [one, two] = [s.raw(), s.raw()];
  const multi = one.multi();
  for (let n = 0; n < 10_000; n++) multi.incr(s.key('n'));
  const seen = [];
  const done = multi.exec();
  let finished = false;
  done.then(() => (finished = true));
  while (!finished) seen.push(await two.get(s.key('n')));
  await done;
  assert.ok(seen.every(value => value === null || value === '10000'), `${new Set(seen).size} values`);
});

test('values of 16 MB go in and come out, bytes untouched', async t => {
  const s = stage(t);
  const raw = s.raw();
  const big = Buffer.alloc(16 << 20);
  for (let n = 0; n < big.length; n += 4) big.writeUInt32LE((n * 2654435761) >>> 0, n);
  await raw.set(s.key('big'), big);
  assert.ok((await raw.getBuffer(s.key('big'))).equals(big));
  assert.equal(await raw.strlen(s.key('big')), 16 << 20);
  await raw.hset(s.key('h'), 'f', big);
  assert.ok((await raw.hgetBuffer(s.key('h'), 'f')).equals(big));
  assert.equal(await raw.eval("return #redis.call('GET', KEYS[1])", 1, s.key('big')), 16 << 20);
  assert.equal(await raw.eval('return redis.sha1hex(ARGV[1])', 0, big), createHash('sha1').update(big).digest('hex'));
  await raw.unlink(s.key('big'), s.key('h'));
});

test('scan streams meet every key once the keyspace rests, and all that stayed while it changes', async t => {
  const s = stage(t);
  const raw = s.raw();
  const pipe = raw.pipeline();
  for (let n = 0; n < 3000; n++) pipe.set(s.key('k', n), n);
  pipe.rpush(s.key('list'), 1);
  await pipe.exec();
  const scan = async more => {
    const all = [];
    for await (const keys of raw.scanStream(more)) all.push(...keys);
    return all;
  };
  const all = await scan({ match: s.key('k', '*'), count: 100 });
  assert.equal(new Set(all).size, 3000);
  assert.equal(all.length, 3000, 'no key twice');
  assert.deepEqual(await scan({ match: s.key('*'), type: 'list' }), [s.key('list')]);
  assert.equal(new Set(await scan({ match: s.key('k', '[12]?') })).size, 20);
  // Deleting while scanning, as BullMQ's clean-up does.
  const met = new Set();
  for await (const keys of raw.scanStream({ match: s.key('k', '*'), count: 50 })) {
    for (const key of keys) met.add(key);
    if (keys.length) await raw.del(...keys);
  }
  assert.equal(met.size, 3000);
  assert.deepEqual(await raw.keys(s.key('k', '*')), []);
});

test('HSCAN, SSCAN and ZSCAN walk big and small ones', async t => {
  const s = stage(t);
  const raw = s.raw();
  const fields = Object.fromEntries(Array.from({ length: 1500 }, (_, n) => [`f${n}`, `v${n}`]));
  await raw.hset(s.key('h'), fields);
  await raw.sadd(s.key('u'), Object.keys(fields));
  await raw.zadd(s.key('z'), ...Object.keys(fields).flatMap((f, n) => [n, f]));
  for (const [stream, width] of [[raw.hscanStream(s.key('h'), { count: 40 }), 2], [raw.sscanStream(s.key('u'), { count: 40 }), 1], [raw.zscanStream(s.key('z'), { count: 40 }), 2]]) {
    const all = [];
    let pages = 0;
    for await (const page of stream) {
      assert.ok(page.length <= 200 * width, `${page.length}`);
      all.push(...page.filter((_, n) => n % width === 0));
      pages++;
    }
    assert.equal(new Set(all).size, 1500);
    assert.ok(pages > 5, `${pages}`);
  }
  await raw.hset(s.key('small'), 'b', 1, 'a', 2, 'c', 3);
  assert.deepEqual(await raw.hscan(s.key('small'), 0, 'COUNT', 1), ['0', ['b', '1', 'a', '2', 'c', '3']]);
  await raw.hset(s.key('small'), 'a', 9);
  await raw.hdel(s.key('small'), 'b');
  assert.deepEqual(await raw.hgetall(s.key('small')), { a: '9', c: '3' });
  assert.deepEqual(await raw.hscan(s.key('h'), 0, 'MATCH', 'f12', 'COUNT', 5000), ['0', ['f12', 'v12']]);
  await raw.sadd(s.key('ints'), 3, 1, 2);
  assert.deepEqual(await raw.sscan(s.key('ints'), 0, 'COUNT', 1), ['0', ['1', '2', '3']]);
});

test('published messages reach channels and patterns, in order, and only while subscribed', async t => {
  const s = stage(t);
  const [publisher, subscriber] = [s.raw(), s.raw()];
  const got = [];
  subscriber.on('message', (channel, message) => got.push(['message', channel, message]));
  subscriber.on('pmessage', (pattern, channel, message) => got.push(['pmessage', pattern, channel, message]));
  assert.equal(await subscriber.subscribe(s.key('a'), s.key('b')), 2);
  assert.equal(await subscriber.psubscribe(s.key('[ab]'), s.key('c*')), 4);
  assert.equal(await publisher.publish(s.key('a'), 'one'), 2);
  assert.equal(await publisher.publish(s.key('cd'), 'two'), 1);
  assert.equal(await publisher.publish(s.key('none'), 'lost'), 0);
  await publisher.multi().publish(s.key('b'), 'three').exec();
  await publisher.eval("redis.call('PUBLISH', KEYS[1], 'four')", 1, s.key('b'));
  await eventually(() => got.length === 7);
  assert.deepEqual(got, [
    ['message', s.key('a'), 'one'], ['pmessage', s.key('[ab]'), s.key('a'), 'one'],
    ['pmessage', s.key('c*'), s.key('cd'), 'two'],
    ['message', s.key('b'), 'three'], ['pmessage', s.key('[ab]'), s.key('b'), 'three'],
    ['message', s.key('b'), 'four'], ['pmessage', s.key('[ab]'), s.key('b'), 'four'],
  ]);
  assert.deepEqual((await publisher.pubsub('CHANNELS', s.key('*'))).sort(), [s.key('a'), s.key('b')]);
  assert.deepEqual(await publisher.pubsub('NUMSUB', s.key('a'), s.key('x')), [s.key('a'), 1, s.key('x'), 0]);
  assert.ok((await publisher.pubsub('NUMPAT')) >= 2);
  // By name: without one, ioredis 6 waits for ever over RESP3, on Redis too.
  await subscriber.punsubscribe(s.key('[ab]'), s.key('c*'));
  await subscriber.unsubscribe(s.key('a'));
  assert.equal(await publisher.publish(s.key('a'), 'gone'), 0);
  assert.equal(await publisher.publish(s.key('b'), 'there'), 1);
  await subscriber.unsubscribe(s.key('b'));
});

test('10,000 messages come through in order', async t => {
  const s = stage(t);
  const [publisher, subscriber] = [s.raw(), s.raw()];
  await subscriber.subscribe(s.key('c'));
  const got = heard(subscriber, 'message', 10_000, 60_000);
  const pipe = publisher.pipeline();
  for (let n = 0; n < 10_000; n++) pipe.publish(s.key('c'), n);
  await pipe.exec();
  assert.ok((await got).every(([, message], n) => message === String(n)));
});

test('a subscriber of the old protocol may do little else', async t => {
  const s = stage(t);
  const { host, port, path } = connection();
  const socket = connect(path ? { path } : { host, port });
  t.after(() => socket.destroy());
  let text = '';
  socket.on('data', data => (text += data));
  socket.write(`SUBSCRIBE ${s.key('c')}\r\nGET x\r\nPING\r\n`);
  await eventually(() => text.includes('PONG') || text.toLowerCase().includes('$4\r\npong'));
  assert.match(text, /-ERR Can't execute 'get': only \(P\|S\)SUBSCRIBE \/ \(P\|S\)UNSUBSCRIBE \/ PING \/ QUIT \/ RESET are allowed in this context/);
  assert.ok(text.endsWith('*2\r\n$4\r\npong\r\n$0\r\n\r\n'), JSON.stringify(text.slice(-60)));
});

test('scripts: cached by hash, found again, told apart from unknown ones', async t => {
  const s = stage(t);
  const raw = s.raw();
  const text = `return {KEYS[1], ARGV[1], ${Date.now()}}`;
  const sha = createHash('sha1').update(text).digest('hex');
  await assert.rejects(raw.evalsha(sha, 1, 'k', 'a'), /^ReplyError: NOSCRIPT No matching script\. Please use EVAL\.$/);
  assert.deepEqual(await raw.script('EXISTS', sha, 'f'.repeat(40)), [0, 0]);
  assert.equal(await raw.script('LOAD', text), sha);
  assert.deepEqual(await raw.script('EXISTS', sha), [1]);
  assert.deepEqual((await raw.evalsha(sha, 1, 'k', 'a')).slice(0, 2), ['k', 'a']);
  assert.deepEqual((await raw.evalsha(sha.toUpperCase(), 1, 'k', 'a')).slice(0, 2), ['k', 'a']);
  const [[error]] = await raw.multi().evalsha('e'.repeat(40), 0).exec().then(results => results.map(([e]) => [e]));
  assert.match(error.message, /^NOSCRIPT/);
  raw.defineCommand('twice', { numberOfKeys: 1, lua: "return redis.call('INCRBY', KEYS[1], ARGV[1] * 2)" });
  assert.equal(await raw.twice(s.key('n'), 21), 42);
  assert.deepEqual(await raw.pipeline().twice(s.key('n'), 1).twice(s.key('n'), 1).exec(), [[null, 44], [null, 46]]);
});

test('scripts: a failing one keeps what it did, and says what failed', async t => {
  const s = stage(t);
  const raw = s.raw();
  const k = s.key('k');
  await assert.rejects(raw.eval("redis.call('SET', KEYS[1], 'done') redis.call('INCR', KEYS[1]) redis.call('SET', KEYS[1], 'never')", 1, k), /ERR value is not an integer or out of range/);
  assert.equal(await raw.get(k), 'done');
  await assert.rejects(raw.eval('return redis.call()', 0), /Please specify at least one argument for this redis lib call/);
  await assert.rejects(raw.eval("return redis.call('NOSUCH')", 0), /Unknown Redis command called from script/);
  await assert.rejects(raw.eval("return redis.call('GET')", 0), /Wrong number of args calling Redis command from script/);
  await assert.rejects(raw.eval("return redis.error_reply('MY own')", 0), /^ReplyError: MY own$/);
  await assert.rejects(raw.eval('return {err = "plain"}', 0), /plain/);
  await assert.rejects(raw.eval('error("thrown")', 0), /thrown/);
  await assert.rejects(raw.eval('return nosuch', 0), /Script attempted to access nonexistent global variable 'nosuch'/);
  await assert.rejects(raw.eval('nosuch = 1', 0), /Attempt to modify a readonly table|Script attempted to create global variable/);
  await assert.rejects(raw.eval('syntax error here', 0), /Error compiling script/);
  assert.equal(await raw.eval("local r = redis.pcall('INCR', KEYS[1]) return r.err", 1, k), 'ERR value is not an integer or out of range');
  assert.equal(await raw.eval("return redis.call('TYPE', KEYS[1]).ok", 1, k), 'string');
  await assert.rejects(raw.eval("return redis.call('BLPOP', KEYS[1], 0) == false and redis.call('SUBSCRIBE', 'x')", 1, s.key('none')), /not allowed from script/);
});

test('scripts: values change as Redis changes them', async t => {
  const s = stage(t);
  const raw = s.raw();
  const run = (lua, ...args) => raw.eval(lua, 0, ...args);
  assert.deepEqual(await run("return {1, 2, nil, 4}"), [1, 2]);
  assert.deepEqual(await run("return {3.99, -3.99, '3.99', true, false}"), [3, -3, '3.99', 1, null]);
  assert.deepEqual(await run('return {}'), []);
  assert.equal(await run("return cjson.encode({a = 1, 2.5})").catch(e => /sparse|mixed|excessively/i.test(e.message) || e.message) !== undefined, true);
  assert.equal(await run("return cjson.encode({1, 2.5, '/', 1e15, 12345678901234, {}})"), '[1,2.5,"\\/",1e+15,12345678901234,{}]');
  assert.equal(await run("return cjson.encode(cjson.decode(ARGV[1]))", '{"a":[1,null,{"b":"\\u00e9/"}]}'), '{"a":[1,null,{"b":"é\\/"}]}');
  assert.equal(await run("return tostring(cjson.decode('[]')[1] == nil) .. type(cjson.null)"), 'trueuserdata');
  await assert.rejects(run("return cjson.decode('{bad')"), /Expected object key string/);
  assert.deepEqual(await run("return cmsgpack.unpack(cmsgpack.pack({1, 'two', {3}}))"), [1, 'two', [3]]);
  assert.equal(await run("return string.format('%.17g %s %d', 0.1, 1e15, 7)"), '0.10000000000000001 1e+15 7');
  assert.equal(await run('return tostring(2^53) .. " " .. tostring(10/2) .. " " .. tostring(1/3)'), '9.007199254741e+15 5 0.33333333333333');
  assert.equal(await run("redis.call('SET', 'x', 2^53) return redis.call('GET', 'x')").then(async v => (await raw.del('x'), v)), '9007199254740992');
  assert.equal(await run("redis.call('SET', 'x', 0.1) return redis.call('GET', 'x')").then(async v => (await raw.del('x'), v)), '0.10000000000000001');
  assert.equal(await run('return #{unpack(ARGV)}', ...Array.from({ length: 7000 }, (_, n) => n)), 7000);
  assert.equal(await run('return bit.band(0xff, 0x0f) + bit.lshift(1, 8)'), 271);
  assert.deepEqual(await run("return {struct.unpack('>I4', struct.pack('>I4', 305419896))}"), [305419896, 5]);
  assert.deepEqual(await run("return redis.call('PING')"), 'PONG');
  const [seconds, micros] = await run("return redis.call('TIME')");
  assert.ok(Math.abs(Number(seconds) * 1000 + Number(micros) / 1000 - Date.now()) < 5000);
  assert.equal(await run("return type(os) .. (os and type(os.clock) .. type(os.execute) or '')").catch(() => 'nil').then(v => /nil$/.test(v) || v === 'nil'), true);
  for (const forbidden of ['io', 'require', 'dofile', 'loadfile']) {
    await assert.rejects(run(`return ${forbidden}.x`), /nonexistent global variable|attempt to index/);
  }
});

test('keys expire when they say, for every reader', async t => {
  const s = stage(t);
  const raw = s.raw();
  const k = s.key('k');
  assert.equal(await raw.set(k, 1, 'PX', 3000), 'OK');
  assert.equal(await raw.set(k, 2, 'NX'), null);
  assert.equal(await raw.set(k, 3, 'PX', 3000, 'XX'), 'OK');
  assert.ok((await raw.pttl(k)) <= 3000);
  await raw.set(k, 4, 'KEEPTTL');
  assert.ok((await raw.pttl(k)) > 0);
  await eventually(async () => (await raw.get(k)) === null);
  assert.equal(await raw.exists(k), 0);
  assert.deepEqual(await raw.keys(k), []);
  assert.equal(await raw.pttl(k), -2);
  await raw.set(k, 1);
  assert.equal(await raw.pttl(k), -1);
  assert.equal(await raw.pexpireat(k, Date.now() - 1), 1);
  assert.equal(await raw.exists(k), 0);
  await raw.set(k, 1, 'EX', 100);
  assert.equal(await raw.persist(k), 1);
  assert.equal(await raw.ttl(k), -1);
  await raw.hset(k + 'h', 'a', 1);
  await raw.pexpire(k + 'h', 60_000);
  await raw.rename(k + 'h', k + 'i');
  assert.ok((await raw.pttl(k + 'i')) > 0);
});

test('the wrong kind of value is told so', async t => {
  const s = stage(t);
  const raw = s.raw();
  await raw.set(s.key('s'), 'x');
  for (const [command, ...args] of [['hset', 'f', 'v'], ['lpush', 'x'], ['sadd', 'x'], ['zadd', 1, 'x'], ['xadd', '*', 'f', 'v'], ['hgetall'], ['lrange', 0, -1], ['smembers'], ['zrange', 0, -1], ['xlen'], ['bzpopmin', 0.01], ['lpos', 'x']]) {
    await assert.rejects(raw[command](s.key('s'), ...args), /WRONGTYPE Operation against a key holding the wrong kind of value/, command);
  }
  await assert.rejects(raw.rename(s.key('none'), 'x'), /ERR no such key/);
  await assert.rejects(raw.call('GET'), /ERR wrong number of arguments for 'get' command/);
  await assert.rejects(raw.call('SET', s.key('s'), 1, 'NX', 'XX'), /ERR syntax error/);
  await assert.rejects(raw.call('CLIENT', 'NOSUCH'), /unknown subcommand/i);
  await assert.rejects(raw.call('XADD', s.key('x'), '0-0', 'a', 'b'), /ERR The ID specified in XADD must be greater than 0-0/);
});

test('INFO has what BullMQ, ioredis and Bull Board read', async t => {
  const raw = stage(t).raw();
  const text = await raw.info();
  const info = fieldsIn(text);
  assert.match(info.redis_version, /^[67]\.\d+\.\d+$|^[89]\.\d+/);
  const [major, minor] = info.redis_version.split('.').map(Number);
  assert.ok(major > 6 || (major === 6 && minor >= 2), info.redis_version);
  assert.equal(info.maxmemory_policy, 'noeviction');
  assert.equal(info.redis_mode, 'standalone');
  assert.equal(info.loading, '0');
  assert.equal(info.role, 'master');
  assert.equal(info.cluster_enabled, '0');
  assert.ok(info.os && info.run_id);
  for (const field of ['tcp_port', 'uptime_in_seconds', 'maxmemory', 'total_system_memory', 'used_memory', 'used_memory_peak', 'mem_fragmentation_ratio', 'connected_clients', 'blocked_clients', 'total_commands_processed', 'process_id']) {
    assert.ok(Number.isFinite(Number(info[field])) && info[field] !== '', `${field}: ${info[field]}`);
  }
  assert.ok(Number(info.connected_clients) >= 1);
  assert.ok(Number(info.used_memory) > 0);
  assert.doesNotMatch(text, /dragonfly_version:|valkey_version:|server:Dragonfly|server:Valkey/);
  for (const section of ['Server', 'Clients', 'Memory', 'Persistence', 'Stats', 'Replication', 'CPU', 'Keyspace']) {
    assert.ok(text.includes(`# ${section}\r\n`), section);
  }
  assert.ok((await raw.info('memory')).startsWith('# Memory\r\n'));
  assert.ok(!(await raw.info('memory')).includes('# Server'));
  assert.match(fieldsIn(await raw.info('keyspace')).db0 ?? 'keys=0,expires=0,avg_ttl=0', /^keys=\d+,expires=\d+,avg_ttl=\d+/);
});

test('CLIENT LIST shows who waits for what', async t => {
  const s = stage(t);
  const raw = s.raw();
  const waiter = s.raw({ connectionName: `${s.prefix}-w` });
  const popped = waiter.bzpopmin(s.key('z'), 30);
  const [line] = await blocked(raw, 1, 'bzpopmin', `${s.prefix}-w`);
  assert.ok(line.flags.includes('b'), line.flags);
  assert.match(line.addr, /:\d+$/);
  assert.equal(line.db, '0');
  assert.equal(line.user, 'default');
  assert.ok(Number(line.id) > 0 && Number(line.age) >= 0);
  const own = clientsIn(await raw.client('LIST')).find(c => c.cmd === 'client|list');
  assert.ok(own);
  const byId = clientsIn(await raw.client('LIST', 'ID', line.id));
  assert.deepEqual(byId.map(c => c.name), [`${s.prefix}-w`]);
  assert.ok(clientsIn(await raw.client('LIST', 'TYPE', 'normal')).length >= 2);
  const before = Number(fieldsIn(await raw.info('clients')).blocked_clients);
  assert.ok(before >= 1);
  assert.equal(await raw.client('UNBLOCK', line.id), 1);
  assert.equal(await popped, null);
});

test('CLIENT KILL ends the one it names', async t => {
  const s = stage(t);
  const raw = s.raw();
  const victim = s.raw({ connectionName: `${s.prefix}-v`, retryStrategy: null });
  const id = await victim.client('ID');
  const ended = heard(victim, 'end');
  assert.equal(await raw.client('KILL', 'ID', id), 1);
  await ended;
  assert.equal(await raw.client('KILL', 'ID', id), 0);
  await eventually(async () => !clientsIn(await raw.client('LIST')).some(c => c.name === `${s.prefix}-v`));
  await assert.rejects(raw.client('KILL', '127.0.0.1:1'), /ERR No such client/);
});

test('a client that half-closes is answered what it asked and let go', async t => {
  const s = stage(t);
  const { host, port, path } = connection();
  const socket = connect({ ...(path ? { path } : { host, port }), allowHalfOpen: true });
  let text = '';
  socket.on('data', data => (text += data));
  const closed = once(socket, 'close');
  socket.end(`SET ${s.key('k')} v\r\nGET ${s.key('k')}\r\n`);
  socket.once('end', () => socket.destroy());
  await closed;
  assert.equal(text, '+OK\r\n$1\r\nv\r\n');
});

test('inline commands, empty lines and quotes are understood; nonsense ends the connection', async t => {
  const s = stage(t);
  const { host, port, path } = connection();
  const talk = (request, enough) =>
    new Promise((resolve, reject) => {
      const socket = connect(path ? { path } : { host, port });
      let text = '';
      socket.on('data', data => {
        text += data;
        if (enough && text.length >= enough) socket.destroy();
      });
      socket.on('close', () => resolve(text));
      socket.on('error', reject);
      socket.write(request);
    });
  assert.equal(await talk(`\r\nPING\r\nSET ${s.key('k')} "a b\\x41"\r\nGET ${s.key('k')}\r\nQUIT\r\n`), '+PONG\r\n+OK\r\n$4\r\na bA\r\n+OK\r\n');
  assert.match(await talk('*1\r\nPING\r\n'), /^-ERR Protocol error: expected '\$', got 'P'\r\n$/);
  assert.match(await talk('*99999999999\r\n'), /^-ERR Protocol error: invalid multibulk length\r\n$/);
  assert.match(await talk('*1\r\n$99999999999\r\n'), /^-ERR Protocol error: invalid bulk length\r\n$/);
  assert.match(await talk('SET "unbalanced\r\n'), /^-ERR Protocol error: unbalanced quotes in request\r\n$/);
});

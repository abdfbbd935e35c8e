// What a phone decides by itself, case by case; tokens are signed by Node, not by us.

import assert from 'node:assert/strict';
import { generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { test } from 'node:test';

const { decide, passed } = await import(`${process.env.GATE_ASSETS}/js/decide.js`);
const { readToken, isSignedBy } = await import(`${process.env.GATE_ASSETS}/js/token.js`);
const { Tickets } = await import(`${process.env.GATE_ASSETS}/js/bundle.js`);

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const event = randomUUID();
const { publicKey, privateKey } = generateKeyPairSync('ed25519');
const raw = new Uint8Array(publicKey.export({ type: 'spki', format: 'der' }).subarray(-32));

function tokenText({ version = 1, of = event, key = 1, serial = 5, generation = 1 } = {}) {
  const claims = Buffer.alloc(29);
  claims[0] = version;
  Buffer.from(of.replaceAll('-', ''), 'hex').copy(claims, 1);
  [key, serial, generation].forEach((number, i) => claims.writeUInt32BE(number, 17 + 4 * i));
  const signature = sign(null, Buffer.concat([Buffer.from('stampede ticket token v1\0\0'), claims]), privateKey);
  const bits = [...Buffer.concat([claims, signature])].map(byte => byte.toString(2).padStart(8, '0')).join('').padEnd(745, '0');
  return bits.match(/.{5}/g).map(five => ALPHABET[parseInt(five, 2)]).join('');
}

const list = { id: event, name: 'Main', opensAt: null, closesAt: null, entries: 1, reentry: false };
const bits = (...numbers) => {
  const map = new Uint8Array(4);
  for (const number of numbers) map[number >> 3] |= 1 << (number & 7);
  return map;
};
const tickets = more => new Tickets({
  target: event, name: 'Night', seq: 10, capacity: 20, keys: [{ kid: 1, publicKey: raw, revoked: false }], lists: [list], gates: [],
  voided: bits(), generations: new Map(), members: new Map(), usedUp: new Map(), ...more,
});

async function result(given = {}, token = {}) {
  const read = readToken(tokenText(token));
  const known = given.tickets ?? tickets();
  const key = known.key(read.key);
  const signed = key !== null && (await isSignedBy(read, key.publicKey));
  return decide({ token: read, signed, tickets: known, list, own: null, kind: 'entry', now: Date.parse('2026-11-20T20:00:00Z'), ...given });
}
const own = more => ({ list: event, serial: 5, used: 1, inside: true, at: '', gateName: null, nonce: 'n', seq: null, ...more });

test('a good ticket passes, and each reason is found', async () => {
  assert.deepEqual(await result(), { result: 'ok', doubt: null });
  const cases = [
    ['unknown', {}, { version: 2 }],
    ['wrong_event', {}, { of: randomUUID() }],
    ['unknown', {}, { key: 9 }],
    ['void', { tickets: tickets({ voided: bits(5) }) }],
    ['revoked_key', { tickets: tickets({ keys: [{ kid: 1, publicKey: raw, revoked: true }] }) }],
    ['superseded', { tickets: tickets({ generations: new Map([[5, 2]]) }) }],
    ['blocked', { tickets: tickets({ blocked: bits(5) }) }],
    ['not_on_list', { tickets: tickets({ members: new Map([[event, bits(4, 6)]]) }) }],
    ['not_yet', { list: { ...list, opensAt: '2026-11-20T20:00:01Z' } }],
    ['expired', { list: { ...list, closesAt: '2026-11-20T20:00:00Z' } }],
    ['already_redeemed', { tickets: tickets({ usedUp: new Map([[event, bits(5)]]) }) }],
    ['already_redeemed', { own: own() }],
    ['not_inside', { kind: 'exit', own: own({ inside: false }) }],
    ['ok', { kind: 'exit', own: own() }],
    ['ok', { list: { ...list, entries: 0 }, own: own({ used: 7 }) }],
  ];
  for (const [expected, given, token] of cases) {
    assert.equal((await result(given, token)).result, expected, `${expected} ${JSON.stringify(token ?? Object.keys(given))}`);
  }
});

test('a token that was altered is forged, and has one spelling only', async () => {
  const text = tokenText();
  const altered = readToken(`${text.slice(0, 40)}${text[40] === 'A' ? 'B' : 'A'}${text.slice(41)}`);
  const signed = await isSignedBy(altered, raw);
  assert.equal(signed, false);
  for (const other of [text.toLowerCase(), text.slice(1), `${text}A`, ` ${text}`, `${text.slice(0, 148)}1`]) assert.equal(readToken(other), null);
  const sibling = ALPHABET[ALPHABET.indexOf(text[148]) ^ 1];
  assert.equal(readToken(text.slice(0, 148) + sibling), null);
});

test('the server’s word is newer than what this phone knew, unless the phone has scanned since', async () => {
  assert.equal((await result({ own: own({ seq: 10 }) })).result, 'ok');
  assert.equal((await result({ own: own({ seq: 11 }) })).result, 'already_redeemed');
  const usedUp = tickets({ usedUp: new Map([[event, bits(5)]]) });
  assert.equal((await result({ tickets: usedUp, own: own({ used: 0, inside: false }) })).result, 'ok');
});

test('several entries and re-entry are counted, and are not certain', async () => {
  const twice = { ...list, entries: 2 };
  assert.deepEqual(await result({ list: twice, own: own() }), { result: 'ok', doubt: 'uncertainEntries' });
  assert.equal((await result({ list: twice, own: own({ used: 2 }) })).result, 'already_redeemed');
  const again = { ...list, reentry: true };
  const scan = { serial: 5, at: '', gateName: null, nonce: 'n' };
  const outside = passed(own(), again, { ...scan, kind: 'exit' });
  assert.equal((await result({ list: again, own: outside })).result, 'ok');
  assert.equal((await result({ list: again, own: passed(outside, again, { ...scan, kind: 'entry' }) })).result, 'already_redeemed');
});

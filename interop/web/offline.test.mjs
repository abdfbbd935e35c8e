// The gate page without a network, and what comes of it when the network is back.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';

import { launch, newPhone } from './phone.mjs';
import { startProxy } from './proxy.mjs';
import { eventually, startServer } from './server.mjs';

let server;
let event;
let browser;
before(async () => {
  server = await startServer();
  event = await server.openEvent({ tickets: 14 });
  browser = await launch();
});

/** A phone at a gate that has the page and the tickets. */
async function atGate(name, gate, url = server.url, of = event) {
  const { key } = await of.device(name, gate);
  const phone = await newPhone(browser);
  await phone.enter(url, key);
  await phone.keptPage();
  return phone;
}

test('three scans without a network, a reload, and each is sent once', async () => {
  const phone = await atGate('Offline', 0);
  await phone.goOffline();
  for (const number of [1, 2, 3]) {
    const { colour, text } = await phone.handScan(event.token(number));
    assert.deepEqual([colour, text.includes(`No. ${number}`)], ['ok', true], text);
  }
  await phone.unsent(3);
  await phone.picture('offline-ok');
  await phone.page.reload();
  await phone.unsent(3);
  const again = await phone.handScan(event.token(2));
  assert.match(again.text, /No[^]*Already in: \d\d:\d\d:\d\d, Gate A/);
  await phone.picture('offline-no');
  assert.equal((await phone.handScan(event.token(4))).colour, 'ok');
  await phone.unsent(5);
  assert.deepEqual(await event.scans(), []);
  await phone.goOnline();
  await phone.unsent(0);
  await phone.page.reload();
  await phone.page.waitForSelector('body[data-connection=online]');
  await phone.syncNow();
  const scans = await event.scans();
  assert.deepEqual(scans.map(({ number, result, offline }) => [number, result, offline]), [
    [1, 'ok', true], [2, 'ok', true], [3, 'ok', true], [2, 'already_redeemed', true], [4, 'ok', true],
  ]);
  assert.equal(await phone.page.isVisible('#messages-open'), false);
  await phone.close();
});

test('a withdrawn ticket, a revoked key and a ticket of another event are refused without a network', async () => {
  const other = await server.openEvent({ name: 'Jazz Night', tickets: 2, gates: ['Door'] });
  const phone = await atGate('Revoked', 0, server.url, other);
  await other.withdraw(1);
  await phone.syncNow();
  await phone.knowsVoid(1);
  await phone.goOffline();
  assert.match((await phone.handScan(other.token(1))).text, /No[^]*cancelled[^]*box office/);
  assert.match((await phone.handScan(event.token(14))).text, /No[^]*another event/);
  const altered = other.token(2).replace(/^(.{60})(.)/, (_, head, last) => head + (last === 'A' ? 'B' : 'A'));
  assert.match((await phone.handScan(altered)).text, /No[^]*Forged/);
  await phone.goOnline();
  await phone.unsent(0);
  await server.call('DELETE', `/api/events/${other.id}/keys/1`);
  await phone.syncNow();
  await eventually('the phone knows', async () => (await phone.kept()).revoked);
  await phone.goOffline();
  assert.match((await phone.handScan(other.token(2))).text, /No[^]*revoked/);
  await phone.close();
});

test('the same ticket at two gates without a network is a conflict, told on the phone and kept with both scans', async () => {
  const [first, second] = [await atGate('North', 0), await atGate('South', 1)];
  for (const phone of [first, second]) {
    await phone.goOffline();
    assert.equal((await phone.handScan(event.token(5))).colour, 'ok');
  }
  await first.goOnline();
  await first.unsent(0);
  await second.goOnline();
  await second.unsent(0);
  await second.page.waitForSelector('#messages-open:not([hidden])');
  await second.page.click('#messages-open');
  await second.page.waitForSelector('#messages[open]');
  const message = await second.page.innerText('#messages-list');
  assert.match(message, /Guest 5: let in here at .* without a network, but the server says: Already in/);
  await second.picture('conflict');
  await second.page.click('#messages button[value=yes]');
  await second.page.waitForSelector('#messages-open', { state: 'hidden' });
  const [conflict] = await event.conflicts();
  assert.deepEqual([conflict.scan.deviceName, conflict.other.deviceName].sort(), ['North', 'South']);
  await first.close();
  await second.close();
});

test('an answer that is lost on its way back is counted once', async () => {
  const proxy = await startProxy(server.port);
  const phone = await atGate('Lossy', 0, proxy.url);
  proxy.hooks.answer = (path, body) => (path === '/api/checkin/redeem' ? null : body);
  assert.equal((await phone.handScan(event.token(6))).colour, 'ok');
  await phone.unsent(0);
  proxy.hooks.answer = (_path, body) => body;
  const scans = (await event.scans()).filter(({ number }) => number === 6);
  assert.deepEqual(scans.map(({ result }) => result), ['ok']);
  assert.equal(await phone.page.isVisible('#messages-open'), false);
  await phone.close();
});

test('a list of tickets that was cut or altered on its way is refused and asked for in full', async () => {
  const proxy = await startProxy(server.port);
  const phone = await atGate('Cut', 0, proxy.url);
  await event.withdraw(7);
  let cut = 0;
  proxy.hooks.answer = (path, body) => {
    if (!path.includes('/bundle') || !path.includes('since=')) return body;
    cut++;
    return JSON.stringify({ ...JSON.parse(body), voided: '' });
  };
  proxy.hooks.seen.length = 0;
  await phone.syncNow();
  const asked = () => proxy.hooks.seen.filter(line => line.includes('/bundle'));
  await eventually('it is asked for in full', () => cut > 0 && asked().some(line => !line.includes('since=')));
  await phone.knowsVoid(7);
  await phone.goOffline();
  assert.match((await phone.handScan(event.token(7))).text, /cancelled/);
  await phone.close();
});

test('without a network a typed id is not decided, and nothing is noted', async () => {
  const phone = await atGate('Undecided', 0);
  await phone.goOffline();
  await phone.page.click('#type-open');
  await phone.page.fill('#type-field', event.ticketId(8));
  await phone.page.click('#type button[value=yes]');
  const { colour, text } = await phone.verdict();
  assert.deepEqual([colour, /cannot be checked without a network/i.test(text)], ['warn', true], text);
  await phone.picture('offline-look');
  // If the phone had not noticed yet that the network is gone, it takes its question back.
  await phone.goOnline();
  await phone.unsent(0);
  assert.ok((await event.scans()).every(({ number }) => number !== 8));
  await phone.close();
});

test('an answer that was under way when the network went does not make the phone believe in it', async () => {
  const proxy = await startProxy(server.port);
  const phone = await atGate('Late answer', 0, proxy.url);
  let release;
  const released = new Promise(resolve => (release = resolve));
  let held = 0;
  proxy.hooks.answer = async (path, body) => {
    if (!path.includes('/bundle')) return body;
    held++;
    await released;
    return body;
  };
  await phone.syncNow();
  await eventually('the answer is under way', () => held > 0);
  const givenUp = phone.page.waitForEvent('requestfailed', request => request.url().includes('/bundle'));
  await phone.goOffline();
  await givenUp;
  release();
  const { colour, text } = await phone.handScan(event.ticketId(10));
  assert.deepEqual([colour, /cannot be checked without a network/i.test(text)], ['warn', true], text);
  await phone.unsent(0);
  await phone.goOnline();
  await phone.page.waitForSelector('body[data-connection=online]');
  assert.ok(!proxy.hooks.seen.some(line => /redeem|undo/.test(line)), proxy.hooks.seen.join(', '));
  await phone.close();
});

test('what is unsent is sent within seconds, however slow the list of tickets is', async () => {
  const proxy = await startProxy(server.port);
  const phone = await atGate('Slow list', 0, proxy.url);
  let held = 0;
  proxy.hooks.instead = path => (path.includes('/bundle') ? new Promise(() => held++) : null);
  await phone.syncNow();
  await eventually('the list is being asked for', () => held > 0);
  proxy.hooks.answer = (path, body) => (path === '/api/checkin/redeem' ? null : body);
  assert.equal((await phone.handScan(event.token(11))).colour, 'ok');
  await eventually('it is sent', () => proxy.hooks.seen.includes('POST /api/checkin/scans 200'), 8_000);
  await phone.unsent(0);
  assert.deepEqual((await event.scans()).filter(({ number }) => number === 11).map(({ result }) => result), ['ok']);
  await phone.close();
});

test('an undo without a network is sent after its scan', async () => {
  const phone = await atGate('Undo offline', 0);
  await phone.goOffline();
  await phone.handScan(event.token(9));
  await phone.page.click('#undo-open:not([disabled])');
  await phone.page.click('#undo button[value=yes]');
  await phone.unsent(2);
  assert.equal((await phone.handScan(event.token(9))).colour, 'ok');
  await phone.goOnline();
  await phone.unsent(0);
  const scans = (await event.scans()).filter(({ number }) => number === 9);
  assert.deepEqual(scans.map(({ result, undoneAt }) => [result, undoneAt !== null]), [['ok', true], ['ok', false]]);
  await phone.close();
});

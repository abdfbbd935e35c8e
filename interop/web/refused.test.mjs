// The gate page when the server is there, but refuses, is slow, or answers late.

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

/** A phone at a gate, behind a proxy of its own. */
async function atGate(name, gate) {
  const proxy = await startProxy(server.port);
  const { key } = await event.device(name, gate);
  const phone = await newPhone(browser);
  await phone.enter(proxy.url, key);
  await phone.keptPage();
  return { phone, hooks: proxy.hooks, url: proxy.url };
}

const logged = async (...numbers) => (await event.scans()).filter(({ number }) => numbers.includes(number));
const messages = async ({ page }) => {
  await page.waitForSelector('#messages-open:not([hidden])');
  await page.click('#messages-open');
  // The list is read from the phone's database first.
  await page.waitForSelector('#messages[open]');
  const text = await page.innerText('#messages-list');
  await page.click('#messages button[value=yes]');
  await page.waitForSelector('#messages-open', { state: 'hidden' });
  return text;
};

test('a guest who is inside stays unsent when the server refuses the scan, and the others are sent', async () => {
  const { phone, hooks } = await atGate('Refused', 0);
  await phone.goOffline();
  for (const number of [1, 2, 3]) assert.equal((await phone.handScan(event.token(number))).colour, 'ok');
  hooks.instead = (path, body) =>
    path === '/api/checkin/scans' && body.includes(event.token(2)) ? { status: 422, body: { code: 'unknown_gate', detail: 'is no gate' } } : null;
  await phone.goOnline();
  await phone.unsent(1);
  assert.match(await messages(phone), /No\. 2, .*the server did not take this scan: is no gate/);
  assert.deepEqual((await logged(1, 2, 3)).map(({ number, result }) => [number, result]), [[1, 'ok'], [3, 'ok']]);
  // The server does not know of the guest, the phone does.
  assert.match((await phone.handScan(event.token(2))).text, /No[^]*Already in/);
  await phone.page.waitForSelector('#messages-open:not([hidden])');
  hooks.instead = () => null;
  await phone.page.reload();
  await phone.unsent(0);
  assert.deepEqual((await logged(2)).map(({ result }) => result), ['ok']);
  assert.equal(await phone.page.isVisible('#messages-open'), true, 'the second scan was not taken either, and nobody passed with it');
  await phone.close();
});

test('a key that may not send keeps its scans, and the person is told once', async () => {
  const { phone, hooks } = await atGate('Forbidden', 0);
  await phone.goOffline();
  for (const number of [4, 5]) assert.equal((await phone.handScan(event.token(number))).colour, 'ok');
  let refused = 0;
  hooks.instead = path => {
    if (path !== '/api/checkin/scans') return null;
    refused++;
    return { status: 403, body: { code: 'forbidden', detail: 'not yours' } };
  };
  await phone.goOnline();
  assert.match(await messages(phone), /did not take 2 scans: not yours/);
  await phone.page.reload();
  await eventually('it is tried again', () => refused === 2);
  await phone.unsent(2);
  assert.equal(await phone.page.isVisible('#messages-open'), false);
  hooks.instead = () => null;
  await phone.page.reload();
  await phone.unsent(0);
  assert.deepEqual((await logged(4, 5)).map(({ result }) => result), ['ok', 'ok']);
  await phone.close();
});

test('after an undo the server’s word counts again, also without a network', async () => {
  const { phone } = await atGate('Undone', 0);
  const { phone: other } = await atGate('Other', 1);
  assert.equal((await phone.handScan(event.token(6))).colour, 'ok');
  await phone.page.click('#undo-open:not([disabled])');
  await phone.page.click('#undo button[value=yes]');
  await eventually('it is undone', async () => (await logged(6))[0]?.undoneAt);
  await phone.unsent(0);
  assert.equal((await other.handScan(event.token(6))).colour, 'ok');
  const [, { seq }] = await logged(6);
  await eventually('the phone knows', async () => {
    await phone.syncNow();
    return (await phone.kept()).seq >= seq;
  });
  await phone.goOffline();
  assert.match((await phone.handScan(event.token(6))).text, /No[^]*Already in/);
  await phone.close();
  await other.close();
});

test('a backlog of 5,000 scans does not delay the verdict', async () => {
  const { phone, hooks } = await atGate('Backlog', 0);
  await phone.goOffline();
  assert.equal((await phone.handScan(event.token(7))).colour, 'ok');
  await phone.page.evaluate(async () => {
    const done = request => new Promise(resolve => (request.onsuccess = () => resolve(request.result)));
    const database = await done(indexedDB.open('stampede-gate'));
    const scans = database.transaction('scans', 'readwrite').objectStore('scans');
    const { order, ...scan } = (await done(scans.getAll())).at(-1);
    for (let i = 1; i < 5_000; i++) scans.add({ ...scan, nonce: crypto.randomUUID() });
    await new Promise(resolve => (scans.transaction.oncomplete = resolve));
    database.close();
  });
  let batches = 0;
  hooks.instead = async (path, body) => {
    if (path !== '/api/checkin/scans') return null;
    batches++;
    await new Promise(resolve => setTimeout(resolve, 700));
    const results = JSON.parse(body).scans.map(({ nonce }) => ({ nonce, result: 'ok', ok: true, ticket: null, seq: null }));
    return { status: 200, body: { serverTime: new Date().toISOString(), results } };
  };
  await phone.goOnline();
  await eventually('the backlog is being sent', () => batches > 0);
  await phone.page.waitForSelector('body[data-connection=online]');
  const asked = performance.now();
  const { colour, text } = await phone.handScan(event.token(8));
  const took = performance.now() - asked;
  assert.deepEqual([colour, /Checked on this phone/.test(text)], ['ok', true], text);
  // Sending all of it takes 14 s at least; the page itself waits two seconds.
  assert.ok(took < 8_000, `${took} ms`);
  assert.ok(batches < 20, 'the backlog was sent before the verdict');
  await phone.close();
});

test('the key is not changed while there are scans that only the old one can send', async () => {
  const { phone, hooks, url } = await atGate('Old key', 0);
  const { enrolUrl } = await event.device('New key', 1);
  await phone.goOffline();
  assert.equal((await phone.handScan(event.token(9))).colour, 'ok');
  hooks.instead = path => (path === '/api/checkin/scans' ? { status: 503, body: {} } : null);
  await phone.goOnline();
  const error = text => phone.page.waitForFunction(words => document.getElementById('key-error').textContent.includes(words), text);
  await phone.page.goto('about:blank');
  await phone.page.goto(url + enrolUrl);
  await error('Not changed: 1 scans');
  // The old key goes on.
  await phone.page.reload();
  await phone.page.waitForSelector('#screen-door:not([hidden])');
  await phone.unsent(1);
  await phone.page.goto('about:blank');
  await phone.page.goto(url + enrolUrl);
  await error('Not changed: 1 scans');
  // The code was not used up.
  hooks.instead = () => null;
  await phone.page.click('#key-form button');
  await phone.start();
  assert.deepEqual((await logged(9)).map(({ result, deviceName }) => [result, deviceName]), [['ok', 'Old key']]);
  assert.equal((await phone.handScan(event.token(10))).colour, 'ok');
  assert.deepEqual((await logged(10)).map(({ deviceName }) => deviceName), ['New key']);
  await phone.close();
});

test('a question that reaches the server after its undo is undone all the same', async () => {
  const { phone, hooks } = await atGate('Late', 0);
  let release;
  const released = new Promise(resolve => (release = resolve));
  hooks.instead = async path => {
    if (path === '/api/checkin/redeem') await released;
    return null;
  };
  await phone.page.click('#type-open');
  await phone.page.fill('#type-field', event.ticketId(11));
  await phone.page.click('#type button[value=yes]');
  assert.match((await phone.verdict()).text, /cannot be checked without a network/i);
  await eventually('the undo came first', () => hooks.seen.includes('POST /api/checkin/undo 404'));
  release();
  await eventually('the question is in the log', async () => (await logged(11)).length === 1);
  await eventually('it is undone', async () => {
    await phone.syncNow();
    return (await logged(11))[0].undoneAt;
  });
  await phone.unsent(0);
  await phone.close();
});

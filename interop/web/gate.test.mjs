// The gate page with a network: camera, hand scanner, photo, undo, enrolment.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';

import { makeFilm } from './film.mjs';
import { launch, newPhone } from './phone.mjs';
import { eventually, startServer } from './server.mjs';
import { drawn, writePgm } from './symbols.mjs';

let server;
let event;
let browser;
before(async () => {
  server = await startServer();
  event = await server.openEvent({ tickets: 14 });
  browser = await launch();
});

/** A browser whose camera sees this code for two and a half of six seconds. */
function seeing(name, text, options) {
  const [pgm, film] = [join(server.folder, `${name}.pgm`), join(server.folder, `${name}.y4m`)];
  writePgm(pgm, drawn(text, options));
  makeFilm(film, pgm, { seconds: 6, shown: [[0, 2.5]] });
  return launch(film);
}

/** A guest whose ticket comes into the view of a camera twice. */
async function twiceInView(t, number) {
  const { key } = await event.device(`Camera ${number}`, 0);
  const known = (await event.scans()).length;
  const phone = await newPhone(await seeing(`good-${number}`, event.token(number)));
  try {
    await phone.page.goto(`${server.url}/gate`);
    await phone.page.fill('#key-field', key);
    await phone.page.click('#key-form button');
    await phone.page.waitForSelector('#place-start:not([disabled])');
    const began = Date.now();
    await phone.page.click('#place-start');
    const first = await phone.verdict();
    const took = Date.now() - began;
    t.diagnostic(`green after ${took} ms, camera's start included`);
    assert.equal(first.colour, 'ok');
    assert.match(first.text, new RegExp(`Come in[^]*Guest ${number}[^]*Row C, Seat ${number}`));
    assert.ok(took < 2_000, `${took} ms`);
    await phone.picture('camera-ok');
    await phone.page.waitForSelector('body[data-result=no]', { timeout: 15_000 });
    const second = await phone.verdict();
    assert.match(second.text, new RegExp(`No[^]*Guest ${number}[^]*Already in: \\d\\d:\\d\\d:\\d\\d, Gate A\\.`));
    await phone.picture('camera-no');
    assert.equal(await phone.page.getAttribute('body', 'data-reader'), 'own');
    await phone.isSound();
  } finally {
    // Its camera would go on scanning.
    await phone.page.context().close();
  }
  // A code that stays in view is one scan. It is gone for three and a half seconds of the film, and a new one after two and a half.
  const scans = (await event.scans()).slice(known);
  assert.deepEqual(scans.map(scan => scan.result), ['ok', 'already_redeemed']);
  const apart = Date.parse(scans[1].at) - Date.parse(scans[0].at);
  assert.ok(apart >= 2_500, `${apart} ms`);
}

test('a ticket in view turns green within two seconds, and red with time and gate when it comes again', async t => {
  // Two seconds are the page's time on a machine that has it. One that is held up by other work decides without its server, or
  // misses the first view: five guests have a try.
  const failures = [];
  for (const number of [1, 11, 12, 13, 14]) {
    try {
      await twiceInView(t, number);
      return;
    } catch (error) {
      t.diagnostic(`guest ${number}: ${error.message}`);
      failures.push(error);
    }
  }
  throw failures[0];
});

test('codes of other sizes and other contents are not ours, and never leave the phone', async () => {
  const { key } = await event.device('Foreign', 0);
  const known = (await event.scans()).length;
  for (const [name, text, version] of [['small', 'https://example.org/', 2], ['ours-in-size', 'HELLO WORLD', 6]]) {
    const phone = await newPhone(await seeing(name, text, { version, level: 'L' }));
    await phone.enter(server.url, key);
    const { colour, text: words } = await phone.verdict();
    assert.deepEqual([colour, /Not one of ours/.test(words)], ['no', true], words);
    await phone.picture(`foreign-${name}`);
    await phone.close();
  }
  assert.equal((await event.scans()).length, known);
});

test('the browser’s own detector is used where there is one', async () => {
  const { key } = await event.device('Native', 0);
  const token = event.token(2);
  const init = `globalThis.BarcodeDetector = class {
    static getSupportedFormats = async () => ['qr_code'];
    detect = async () => [{ rawValue: '${token}' }];
  }`;
  const phone = await newPhone(browser, { init });
  await phone.enter(server.url, key);
  assert.match((await phone.verdict()).text, /Come in[^]*Guest 2/);
  assert.equal(await phone.page.getAttribute('body', 'data-reader'), 'browser');
  await phone.close();
});

test('a hand scanner works wherever the focus is, also with the wrong keyboard layout', async () => {
  const { key } = await event.device('Hand scanner', 1);
  const phone = await newPhone(browser);
  await phone.enter(server.url, key);
  await phone.page.focus('#type-open');
  assert.ok(await phone.keys(event.token(3)), 'Enter would press the button');
  assert.match((await phone.verdict()).text, /Come in[^]*Guest 3/);
  // A Russian layout: the characters are Cyrillic, the keys are right.
  await phone.page.evaluate(() => (document.body.dataset.result = ''));
  await phone.keys(event.token(4), 'cyrillic');
  assert.match((await phone.verdict()).text, /Come in[^]*Guest 4/);
  // Inside the field of a dialog, the scanner's text does not stay there.
  await phone.page.click('#type-open');
  assert.ok(await phone.keys(event.token(4)));
  await phone.page.waitForSelector('body[data-result=no]');
  assert.equal(await phone.page.inputValue('#type-field'), '');
  // Typing of people is left alone.
  await phone.page.fill('#type-field', '');
  assert.equal(await phone.keys('A1'), false);
  assert.equal(await phone.page.inputValue('#type-field'), 'A1');
  assert.match((await phone.verdict()).text, /Already in: .*Gate B/);
  await phone.close();
});

test('a typed ticket id is checked, and what is no ticket is refused', async () => {
  const { key } = await event.device('Typing', 0);
  const phone = await newPhone(browser);
  await phone.enter(server.url, key);
  const type = async text => {
    await phone.page.evaluate(() => (document.body.dataset.result = ''));
    await phone.page.click('#type-open');
    await phone.page.fill('#type-field', text);
    await phone.page.click('#type button[value=yes]');
    return phone.verdict();
  };
  assert.match((await type(event.ticketId(5))).text, /Come in[^]*Guest 5/);
  assert.match((await type('hello')).text, /Not one of ours/);
  await phone.close();
});

test('the last scan is undone with a reason, and the ticket admits again', async () => {
  const { key } = await event.device('Undo', 0);
  const phone = await newPhone(browser);
  await phone.enter(server.url, key);
  await phone.handScan(event.token(6));
  await phone.page.click('#undo-open:not([disabled])');
  await phone.page.waitForSelector('#undo[open]');
  assert.match(await phone.page.textContent('#undo-text'), /Guest 6/);
  await phone.picture('undo');
  await phone.page.selectOption('#undo-reason', { index: 2 });
  await phone.page.click('#undo button[value=yes]');
  await eventually('the undo is in the log', async () => {
    const scan = (await event.scans()).find(({ number }) => number === 6);
    return scan.undoneAt && scan.note?.includes('did not go in');
  });
  await phone.unsent(0);
  assert.match((await phone.handScan(event.token(6))).text, /Come in[^]*Guest 6/);
  await phone.close();
});

test('over plain http the page says why there is no camera, and takes hand scanners and photos', async () => {
  const { key } = await event.device('Plain http', 0);
  const plain = await launch(null, ['--host-resolver-rules=MAP gate.test 127.0.0.1']);
  const phone = await newPhone(plain, { permissions: [] });
  await phone.enter(`http://gate.test:${server.port}`, key);
  await phone.page.waitForSelector('#no-camera:not([hidden])');
  assert.match(await phone.page.innerText('#no-camera'), /plain http[^]*https address/);
  await phone.picture('plain-http');
  assert.match((await phone.handScan(event.token(7))).text, /Come in[^]*Guest 7/);
  // The printed ticket, as a photo.
  await phone.page.evaluate(() => (document.body.dataset.result = ''));
  await phone.page.setInputFiles('#photo', await event.page(8));
  assert.match((await phone.verdict()).text, /Come in[^]*Guest 8/);
  await phone.picture('plain-http-photo');
  await phone.close();
});

test('a device enrols itself by its link, once, and can be forgotten', async () => {
  const { enrolUrl, key } = await event.device('Enrolled', 1);
  const phone = await newPhone(browser);
  await phone.page.goto(server.url + enrolUrl);
  await phone.start();
  assert.equal(new URL(phone.page.url()).hash, '');
  assert.match(await phone.page.textContent('#place-name'), /Gate B/);
  assert.match((await phone.handScan(event.token(9))).text, /Come in[^]*Guest 9/);
  await phone.page.click('#menu-open');
  await phone.page.waitForSelector('#menu[open]');
  assert.match(await phone.page.textContent('#menu-device'), /Enrolled/);
  await phone.page.click('#menu-forget');
  await Promise.all([phone.page.waitForEvent('load'), phone.page.click('#forget button[value=yes]')]);
  await phone.page.waitForSelector('#screen-key:not([hidden])');
  // The key from the time of its creation does not work any more, and the code neither.
  await phone.page.fill('#key-field', key);
  await phone.page.click('#key-form button');
  await phone.page.waitForFunction(() => document.getElementById('key-error').textContent.includes('does not open'));
  await phone.page.fill('#key-field', server.url + enrolUrl);
  await phone.page.click('#key-form button');
  await phone.page.waitForFunction(() => document.getElementById('key-error').textContent.includes('code does not work'));
  await phone.picture('key-wrong');
  await phone.close();
});

test('a device that was revoked lets nobody in, and says why', async () => {
  const { key, device } = await event.device('Lost', 0);
  const phone = await newPhone(browser);
  await phone.enter(server.url, key);
  await phone.page.waitForSelector('body[data-connection=online]');
  await server.call('DELETE', `/api/devices/${device.id}`);
  const { colour, text } = await phone.handScan(event.token(10));
  assert.deepEqual([colour, /not valid any more/.test(text)], ['warn', true], text);
  assert.ok((await event.scans()).every(({ number }) => number !== 10));
  await phone.close();
});

test('a clock that is off is told', async () => {
  const { key } = await event.device('Clock', 0);
  const init = 'const now = Date.now; Date.now = () => now() + 300000;';
  const phone = await newPhone(browser, { init });
  await phone.enter(server.url, key);
  await phone.page.waitForSelector('#clock:not([hidden])');
  assert.match(await phone.page.textContent('#clock'), /5 min off/);
  await phone.close();
});

test('pages and files are sent with their headers', async () => {
  const page = await fetch(`${server.url}/gate`);
  assert.match(page.headers.get('content-security-policy'), /default-src 'none'.*require-trusted-types-for 'script'; trusted-types stampede/);
  assert.match(page.headers.get('permissions-policy'), /^camera=\(self\)/);
  for (const [name, value] of [['x-content-type-options', 'nosniff'], ['cross-origin-opener-policy', 'same-origin'], ['referrer-policy', 'same-origin']]) {
    assert.equal(page.headers.get(name), value);
  }
  const again = await fetch(`${server.url}/gate`, { headers: { 'if-none-match': page.headers.get('etag') } });
  assert.equal(again.status, 304);
  const style = /href="([^"]+\.css)"/.exec(await page.text())[1];
  const sent = await fetch(server.url + style);
  assert.match(sent.headers.get('cache-control'), /immutable/);
  assert.equal(sent.headers.get('content-encoding'), 'gzip');
  assert.ok(readFileSync(`${process.env.GATE_ASSETS}/gate.css`).length > (await sent.text()).length);
  assert.equal((await fetch(`${server.url}/gate/0123456789ab/gate.css`)).status, 404);
  const worker = await fetch(`${server.url}/gate/sw.js`);
  assert.equal(worker.headers.get('service-worker-allowed'), '/gate');
});

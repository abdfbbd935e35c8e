// The gate page when the key of the phone was revoked.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { launch, newPhone } from './phone.mjs';
import { startProxy } from './proxy.mjs';
import { startServer } from './server.mjs';

test('a phone whose key was revoked sends its scans with a new key of the same event', async () => {
  const server = await startServer();
  const event = await server.openEvent({ tickets: 2 });
  const browser = await launch();
  const proxy = await startProxy(server.port);
  const { key, device } = await event.device('Revoked', 0);
  const phone = await newPhone(browser);
  await phone.enter(proxy.url, key);
  await phone.keptPage();
  await phone.goOffline();
  for (const number of [1, 2]) assert.equal((await phone.handScan(event.token(number))).colour, 'ok');
  await server.call('DELETE', `/api/devices/${device.id}`);
  await phone.goOnline();
  // A key of another event cannot send them.
  const elsewhere = await server.openEvent({ name: 'Elsewhere', tickets: 1, gates: [] });
  const other = await elsewhere.device('Other event');
  await phone.page.goto('about:blank');
  await phone.page.goto(proxy.url + other.enrolUrl);
  await phone.page.waitForFunction(() => document.getElementById('key-error').textContent.includes('does not open their event'));
  const { enrolUrl } = await event.device('Instead', 1);
  await phone.page.goto('about:blank');
  await phone.page.goto(proxy.url + enrolUrl);
  await phone.start();
  await phone.unsent(0);
  assert.deepEqual(
    (await event.scans()).map(({ result, deviceName, offline }) => [result, deviceName, offline]),
    Array(2).fill(['ok', 'Instead', true]),
  );
  await phone.close();
});

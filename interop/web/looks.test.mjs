// Every screen in every size and both languages: nothing sticks out, targets are large, axe-core finds nothing serious.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { before, test } from 'node:test';

import { launch, newPhone } from './phone.mjs';
import { startServer } from './server.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const AXE = ['320x568-ru', '390x844-en', '568x320-en'];
const SIZES = [[320, 568], [390, 844], [844, 390], [568, 320]];

let server;
let event;
let browser;
before(async () => {
  server = await startServer();
  event = await server.openEvent({ name: 'The Very Long Opening Night of the Midsummer Festival', tickets: 10 });
  browser = await launch();
});

async function inspect(phone, name) {
  const { page } = phone;
  await phone.isSound();
  const wrong = await page.evaluate(() => {
    const seen = [...document.querySelectorAll('button, select, input, .button')].filter(element => element.checkVisibility());
    const modal = document.querySelector('dialog[open]');
    const reachable = seen.filter(element => !modal || modal.contains(element));
    const named = element => `${element.id || element.className} ${element.textContent.trim().slice(0, 20)}`;
    const overflowing = [...document.querySelectorAll('.figure, #word, dialog[open] form > *')]
      .filter(element => element.checkVisibility() && element.scrollWidth > element.clientWidth + 1)
      .map(element => `${named(element)} sticks out`);
    return reachable.flatMap(element => {
      const target = element.closest('label') ?? element;
      const box = target.getBoundingClientRect();
      const small = box.width < 44 || box.height < 44 ? [`${named(element)}: ${Math.round(box.width)} × ${Math.round(box.height)}`] : [];
      const cut = element.tagName === 'BUTTON' && element.scrollWidth > element.clientWidth + 1 ? [`${named(element)} is cut`] : [];
      return [...small, ...cut];
    }).concat(overflowing);
  });
  assert.deepEqual(wrong, [], name);
  await phone.picture(name);
  // axe-core takes seconds, and what it looks at hardly depends on the size.
  if (!AXE.some(size => name.startsWith(size))) return;
  await page.evaluate(`${axe};0`);
  const { violations } = await page.evaluate(() => axe.run());
  const serious = violations.filter(({ impact }) => ['serious', 'critical'].includes(impact));
  assert.deepEqual(serious.map(({ id, nodes }) => `${id}: ${nodes.map(node => node.html).join(' ')}`), [], name);
}

let number = 0;
for (const [width, height] of SIZES) {
  for (const locale of ['en-GB', 'ru-RU']) {
    const size = `${width}x${height}-${locale.slice(0, 2)}`;
    test(`${size}: key, place, verdicts, menu`, async () => {
      number++;
      const { key } = await event.device(`Phone ${size}`, 0);
      const phone = await newPhone(browser, { width, height, locale });
      const { page } = phone;
      await page.goto(`${server.url}/gate`);
      await page.waitForSelector('#screen-key:not([hidden])');
      await inspect(phone, `${size}-key`);
      await page.fill('#key-field', key);
      await page.click('#key-form button');
      await page.waitForSelector('#place-start:not([disabled])');
      await inspect(phone, `${size}-place`);
      await phone.start();
      await page.waitForSelector('body[data-camera=on]');
      await inspect(phone, `${size}-ready`);
      assert.equal((await phone.handScan(event.token(number))).colour, 'ok');
      await inspect(phone, `${size}-ok`);
      assert.equal((await phone.handScan(event.token(number))).colour, 'no');
      await inspect(phone, `${size}-no`);
      const share = await page.evaluate(() => {
        const box = document.getElementById('verdict').getBoundingClientRect();
        return (box.width * box.height) / (innerWidth * innerHeight);
      });
      assert.ok(share > 0.25, `the verdict covers ${share}`);
      if (height > width) assert.ok(share > 1 / 3, `the verdict covers ${share}`);
      await page.click('#menu-open');
      await inspect(phone, `${size}-menu`);
      await page.check('#menu-big');
      await page.click('#menu button.main');
      await inspect(phone, `${size}-big`);
      await phone.context.close();
    });
  }
}

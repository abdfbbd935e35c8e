// A phone: Chromium with a fake camera, one context a phone. Notes every error of the console and of the page's policy.

import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

import { atEnd } from './ending.mjs';
import { eventually } from './server.mjs';

/** A camera's film; without one the camera shows Chromium's own picture, which has no code. */
export function launch(film = null, more = []) {
  const camera = film ? [`--use-file-for-fake-video-capture=${film}`] : [];
  const launched = chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--font-render-hinting=none', '--use-fake-ui-for-media-stream', '--use-fake-device-for-media-stream', ...camera, ...more],
  });
  atEnd(async () => (await launched).close());
  return launched;
}

/** Told by the browser itself: calls that fail on purpose, and a header that means nothing over plain http. */
const EXPECTED = /Failed to load resource|Cross-Origin-Opener-Policy header has been ignored/;

export async function newPhone(browser, { width = 390, height = 844, locale = 'en-GB', permissions = ['camera'], init } = {}) {
  const context = await browser.newContext({
    viewport: { width, height }, deviceScaleFactor: 2, isMobile: true, hasTouch: true, locale, permissions, reducedMotion: 'reduce',
  });
  const errors = [];
  await context.addInitScript(() => {
    addEventListener('securitypolicyviolation', event => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
  });
  if (init) await context.addInitScript(init);
  const page = await context.newPage();
  page.on('console', message => message.type() === 'error' && !EXPECTED.test(message.text()) && errors.push(message.text()));
  page.on('pageerror', error => errors.push(error.stack));

  const phone = {
    context,
    page,
    /** From the key to the scanner. */
    async enter(url, key) {
      await page.goto(`${url}/gate`);
      await page.fill('#key-field', key);
      await page.click('#key-form button');
      await phone.start();
    },
    async start() {
      await page.waitForSelector('#place-start:not([disabled])');
      await page.click('#place-start');
      await page.waitForSelector('#screen-door:not([hidden])');
    },
    /** The network goes, and the phone has noticed. */
    async goOffline() {
      await context.setOffline(true);
      await page.waitForSelector('body[data-connection=offline]');
    },
    goOnline: () => context.setOffline(false),
    /** Waits until the service worker has the whole page. */
    keptPage: () => page.evaluate(() => navigator.serviceWorker.ready.then(() => true)),
    /** A hand scanner: quick keys into whatever has the focus, then Enter. Resolves to whether the page took the Enter. */
    keys: (text, layout = 'same') => page.evaluate(([typed, cyrillic]) => {
      const target = document.activeElement ?? document.body;
      const press = (key, code) => target.dispatchEvent(new KeyboardEvent('keydown', { key, code, bubbles: true, cancelable: true }));
      for (const character of typed) {
        const code = /\d/.test(character) ? `Digit${character}` : `Key${character}`;
        if (press(cyrillic ? 'ф' : character, code) && target instanceof HTMLInputElement) target.value += character;
      }
      return !press('Enter', 'Enter');
    }, [text, layout === 'cyrillic']),
    /** A code from a hand scanner. Resolves to the verdict. */
    async handScan(text) {
      await page.evaluate(() => (document.body.dataset.result = 'waiting'));
      await phone.keys(text);
      return phone.verdict();
    },
    /** Colour and words, once there is a verdict. */
    async verdict() {
      await page.waitForFunction(() => ['ok', 'no', 'warn'].includes(document.body.dataset.result), null, { timeout: 15_000 });
      return page.evaluate(() => ({ colour: document.body.dataset.result, text: document.getElementById('verdict').innerText }));
    },
    unsent: count => page.waitForSelector(`body[data-unsent="${count}"]`, { timeout: 20_000 }),
    /** What the phone keeps of its event. */
    kept: () => page.evaluate(async () => {
      const done = request => new Promise(resolve => (request.onsuccess = () => resolve(request.result)));
      const database = await done(indexedDB.open('stampede-gate'));
      const [bundle] = await done(database.transaction('bundles').objectStore('bundles').getAll());
      database.close();
      return { seq: bundle.seq, revoked: bundle.keys.some(key => key.revoked), voided: [...bundle.voided] };
    }),
    /** Waits until the phone knows that a ticket is void. */
    knowsVoid: number => eventually('the phone knows', async () => ((await phone.kept()).voided[number >> 3] & (1 << (number & 7))) !== 0),
    /** Asks the server now. */
    async syncNow() {
      await page.evaluate(() => document.getElementById('menu-sync').click());
    },
    async isSound() {
      assert.deepEqual(errors, []);
      const sideways = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(sideways <= 0, `${sideways} px too wide`);
    },
    /** Keeps a picture where GATE_PICTURES says. */
    async picture(name) {
      if (!process.env.GATE_PICTURES) return;
      mkdirSync(process.env.GATE_PICTURES, { recursive: true });
      await page.screenshot({ path: join(process.env.GATE_PICTURES, `${name}.png`) });
    },
    async close() {
      await phone.isSound();
      await context.close();
    },
  };
  return phone;
}

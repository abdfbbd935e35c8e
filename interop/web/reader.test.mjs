// The reader of QR codes on its own, without a browser.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { EACH, frames, kinds } from './frames.mjs';
import { drawn, writePgm } from './symbols.mjs';

const { read } = await import(`${process.env.GATE_ASSETS}/js/qr/read.js`);
const TOKEN = Array.from(randomBytes(149), byte => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'[byte % 32]).join('');

/** A picture of noise, the same for the same seed (xorshift). */
function noise(seed) {
  let state = seed * 0x9e3779b1;
  const grey = Uint8Array.from({ length: 480 * 480 }, () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state & 0xff;
  });
  return { grey, width: 480, height: 480 };
}

test('200 frames, turned, tilted, small, blurred and dark, are read at 95 % or more', t => {
  const folder = mkdtempSync(join(tmpdir(), 'gate-frames-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const pgm = join(folder, 'code.pgm');
  writePgm(pgm, drawn(TOKEN));
  let all = 0;
  let right = 0;
  for (const kind of Object.keys(kinds)) {
    const pictures = frames(pgm, kind);
    assert.equal(pictures.length, EACH, kind);
    const began = performance.now();
    const texts = pictures.map(picture => read(picture).text);
    const each = (performance.now() - began) / EACH;
    const found = texts.filter(text => text === TOKEN).length;
    assert.ok(texts.every(text => text === null || text === TOKEN), `${kind}: a wrong text was read`);
    t.diagnostic(`${kind}: ${found} of ${EACH}, ${each.toFixed(1)} ms a frame`);
    all += EACH;
    right += found;
  }
  t.diagnostic(`together: ${right} of ${all}`);
  assert.ok(all >= 200 && right >= all * 0.95, `${right} of ${all}`);
});

test('every level and mode of a version 6 code is read', () => {
  for (const [text, level] of [['0123456789'.repeat(12), 'L'], ['STAMPEDE $%*+-./: 42', 'Q'], ['https://example.org/?q=1', 'H']]) {
    assert.equal(read(drawn(text, { level })).text, text);
  }
});

test('codes of other sizes are foreign, and nothing is found where no code is', () => {
  for (const version of [1, 2, 4, 5, 7, 10]) {
    const { text, foreign } = read(drawn('A1', { version, level: 'L', scale: 6 }));
    assert.deepEqual([text, foreign], [null, 17 + 4 * version], `version ${version}`);
  }
  for (let seed = 1; seed <= 100; seed++) {
    assert.deepEqual(read(noise(seed)), { text: null, foreign: null }, `noise ${seed}`);
  }
  const white = { grey: new Uint8Array(480 * 480).fill(255), width: 480, height: 480 };
  assert.deepEqual(read(white), { text: null, foreign: null });
});

// English and Russian say the same things.

import assert from 'node:assert/strict';
import { test } from 'node:test';

const { en, ru } = await import(`${process.env.GATE_ASSETS}/js/texts.js`);
const REASONS = [
  'already_redeemed', 'void', 'superseded', 'revoked_key', 'forged', 'malformed', 'wrong_event', 'not_on_list', 'not_yet', 'expired',
  'blocked', 'unknown', 'not_inside',
];

test('both tables have the same keys and placeholders', () => {
  assert.deepEqual(Object.keys(ru), Object.keys(en));
  const placeholders = text => (text.match(/\{\w+\}/g) ?? []).sort();
  for (const key of Object.keys(en)) assert.deepEqual(placeholders(ru[key]), placeholders(en[key]), key);
});

test('every reason of the API has words and something to do, in both languages', () => {
  for (const table of [en, ru]) {
    for (const reason of REASONS) assert.ok(table[reason] && table[`${reason}_do`], reason);
  }
});

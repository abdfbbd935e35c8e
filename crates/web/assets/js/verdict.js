// What the door sees and hears: a word, a colour, who it is, why not, and what to do.

import { signal } from './feedback.js';
import { $ } from './page.js';
import { amount, clockTime, t } from './texts.js';

/** @typedef {import('./types.d.ts').Verdict} Verdict */
/** @typedef {import('./types.d.ts').Result} Result */

/**
 * Shows a verdict until the next one or a tap.
 * @param {Verdict} verdict
 */
export function show({ colour, word, who = '', detail = '', todo = '' }) {
  document.body.dataset.result = colour;
  $('word').textContent = word;
  $('who').textContent = who;
  $('detail').textContent = detail;
  $('todo').textContent = todo;
  // The same verdict twice must be seen as two.
  $('verdict').animate?.([{ opacity: 0.2 }, { opacity: 1 }], { duration: matchMedia('(prefers-reduced-motion: reduce)').matches ? 0 : 160 });
  if (colour) signal(colour);
}

/** Ready for the next guest. */
export function showReady() {
  const running = document.body.dataset.camera === 'on';
  show({ colour: '', word: t('ready'), who: t(running ? 'readyHint' : 'readyNoCamera') });
}

/**
 * Why a ticket may not pass, in words.
 * @param {Result} reason
 * @param {{previous?: {at: string, gateName: string | null, deviceName?: string} | null, event?: string | null, list?: string, opensAt?: string | null, closesAt?: string | null}} about
 */
export function reasonText(reason, about) {
  switch (reason) {
    case 'already_redeemed':
      if (!about.previous) return t('already_unknown');
      return t(reason, { time: clockTime(about.previous.at), gate: about.previous.gateName ?? about.previous.deviceName ?? t('noGate') });
    case 'wrong_event':
      return about.event ? t('wrong_event_named', { event: about.event }) : t(reason);
    case 'not_on_list':
      return t(reason, { list: about.list ?? '' });
    case 'not_yet':
      return t(reason, { time: about.opensAt ? clockTime(about.opensAt) : '…' });
    case 'expired':
      return t(reason, { time: about.closesAt ? clockTime(about.closesAt) : '…' });
    default:
      return t(reason);
  }
}

/**
 * Who a ticket is for, and where; its number if it has no name.
 * @param {{name?: string | null, seat?: string | null, number?: number | null}} ticket
 */
export function person({ name, seat, number }) {
  const numbered = number === null || number === undefined ? '' : t('number', { number: amount(number) });
  return { who: name || numbered, where: seat ?? '' };
}

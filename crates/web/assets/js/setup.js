// The two screens before the scanner: the key, and where this device stands.

import { Refused, Unreachable, connection, useKey } from './api.js';
import { get } from './database.js';
import { device, enrol, refreshMe, remember } from './device.js';
import { wakeSound } from './feedback.js';
import { sendBeforeChange, unsentEvents } from './outbox.js';
import { $, fillSelect } from './page.js';
import { fetchBundle, loadTickets } from './sync.js';
import { t } from './texts.js';

/** @typedef {import('./types.d.ts').Me} Me */
/** @typedef {import('./bundle.js').Kept} Kept */

/** Pause before the tickets of the chosen event are asked for again. */
const RETRY_MS = 3_000;

/** Shows one of the screens: key, place or door. @param {'key' | 'place' | 'door'} name */
export function showScreen(name) {
  document.body.dataset.screen = name;
  for (const screen of ['key', 'place', 'door']) $(`screen-${screen}`).hidden = screen !== name;
}

/**
 * Asks for a key until one works. A code in the address is tried first, and removed from it: it works once.
 * @returns {Promise<Me>}
 */
export async function askForKey() {
  const code = new URLSearchParams(location.hash.slice(1)).get('enrol');
  if (location.hash) history.replaceState(null, '', location.pathname);
  showScreen('key');
  /** @type {HTMLFormElement} */
  const form = $('key-form');
  /** @type {HTMLInputElement} */
  const field = $('key-field');
  if (code) {
    const me = await tryKey(code, true);
    if (me) return me;
    // To be tried again.
    field.value = code;
  }
  return new Promise(resolve => {
    form.onsubmit = async event => {
      event.preventDefault();
      wakeSound();
      const given = field.value.trim();
      if (!given) return;
      // A link may be pasted, too. Codes have 16 characters, perhaps with spaces and dashes; keys are longer.
      const pasted = /enrol=([^&\s]+)/.exec(given)?.[1];
      const me = await tryKey(pasted ?? given, pasted !== undefined || given.replace(/[\s-]/g, '').length <= 16);
      if (!me) return;
      field.value = '';
      resolve(me);
    };
  });
}

/**
 * Tries a key or a code; null, and a message on the screen, if it does not work. The old key stays then, and also as
 * long as there are scans that only it can send. A key that the server refuses can send nothing any more: scans that it
 * leaves go with the new one, if that opens their events.
 * @param {string} given
 * @param {boolean} isCode
 */
async function tryKey(given, isCode) {
  $('key-error').textContent = t('enrolling');
  const old = device.key;
  const unsent = old !== null && old !== given ? await sendBeforeChange() : 0;
  if (unsent > 0 && !connection.keyRefused) {
    $('key-error').textContent = t('keyUnsent', { count: unsent });
    return null;
  }
  try {
    if (isCode) await enrol(given);
    else await remember('key', given);
    const me = await refreshMe();
    const opened = new Set(me.events.map(({ id }) => id));
    const isEnough = (await unsentEvents()).every(event => opened.has(event));
    const problem = opened.size === 0 ? t('noEvents') : isEnough ? '' : t('keyOtherEvent', { count: unsent });
    $('key-error').textContent = problem;
    if (!problem) return me;
    await remember('key', old);
  } catch (error) {
    if (!(error instanceof Refused || error instanceof Unreachable)) throw error;
    if (!isCode) await remember('key', old);
    const wrong = isCode && device.key === old ? 'wrongCode' : 'wrongKey';
    useKey(device.key);
    $('key-error').textContent = t(error instanceof Refused ? wrong : 'noNetwork');
  }
  return null;
}

/**
 * Asks where this device stands; what the organiser has set for it, or what was chosen last, is chosen already.
 * @param {Me} me
 */
export async function askForPlace(me) {
  showScreen('place');
  /** @type {HTMLSelectElement} */
  const events = $('place-event');
  /** @type {HTMLSelectElement} */
  const lists = $('place-list');
  /** @type {HTMLSelectElement} */
  const gates = $('place-gate');
  /** @type {HTMLSelectElement} */
  const kinds = $('place-kind');
  /** @type {HTMLButtonElement} */
  const start = $('place-start');
  const last = device.place;
  /** @type {Kept | null} */
  let kept = null;
  fillSelect(events, me.events.map(({ id, name }) => ({ value: id, text: name })), last?.event ?? me.device?.target ?? null);
  fillSelect(kinds, [{ value: 'entry', text: t('dirEntry') }, { value: 'exit', text: t('dirExit') }], last?.kind ?? 'entry');

  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let again;
  const chooseEvent = async () => {
    clearTimeout(again);
    start.disabled = true;
    const event = events.value;
    $('place-error').textContent = t('enrolling');
    kept = await fetchBundle(event).catch(async () => (await get('bundles', event)) ?? null);
    if (events.value !== event) return;
    $('place-error').textContent = kept ? '' : t(connection.keyRefused ? 'keyInvalid' : 'noNetwork');
    const remembered = last?.event === event ? last : null;
    const set = me.device?.target === event ? me.device : null;
    fillSelect(lists, (kept?.lists ?? []).map(({ id, name }) => ({ value: id, text: name })), remembered?.list ?? set?.list ?? event);
    const named = (kept?.gates ?? []).map(({ id, name }) => ({ value: id, text: name }));
    fillSelect(gates, [{ value: '', text: t('noGate') }, ...named], remembered ? remembered.gate ?? '' : set?.gate ?? '');
    start.disabled = !kept;
    if (!kept) again = setTimeout(chooseEvent, RETRY_MS);
  };
  events.onchange = chooseEvent;
  await chooseEvent();

  return /** @type {Promise<void>} */ (new Promise(resolve => {
    /** @type {HTMLFormElement} */
    const form = $('place-form');
    form.onsubmit = async event => {
      event.preventDefault();
      wakeSound();
      if (!kept) return chooseEvent();
      const gate = gates.value || null;
      await remember('place', {
        event: events.value,
        eventName: events.selectedOptions[0].text,
        list: lists.value,
        listName: lists.selectedOptions[0].text,
        gate,
        gateName: gate && gates.selectedOptions[0].text,
        kind: kinds.value === 'exit' ? 'exit' : 'entry',
      });
      await loadTickets();
      resolve();
    };
  }));
}

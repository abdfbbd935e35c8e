// The menu, the messages, and the dialogs for typing and undoing.

import { connection } from './api.js';
import { all, change, forgetEverything } from './database.js';
import { device, remember } from './device.js';
import { describe, scan, undoScan } from './door.js';
import { useSound } from './feedback.js';
import { undoable, unsentCount } from './outbox.js';
import { $, ask } from './page.js';
import { sync, syncNow } from './sync.js';
import { amount, clockTime, language, t, useLanguage } from './texts.js';
import { show, showReady } from './verdict.js';

/** @param {{changePlace: () => void, refresh: () => void}} actions */
export function setUpMenu({ changePlace, refresh }) {
  /** @type {HTMLInputElement} */
  const sound = $('menu-sound');
  /** @type {HTMLInputElement} */
  const big = $('menu-big');
  /** @type {HTMLSelectElement} */
  const languages = $('menu-language');

  $('menu-open').onclick = () => {
    sound.checked = device.sound;
    big.checked = device.big;
    languages.value = language();
    $('menu-device').textContent = device.me?.device?.name ?? device.me?.user ?? '';
    $('menu-tickets').textContent = sync.tickets ? amount(sync.tickets.kept.capacity) : '–';
    ask('menu');
  };
  sound.onchange = () => {
    useSound(sound.checked);
    remember('sound', sound.checked);
  };
  big.onchange = () => {
    document.body.classList.toggle('big', big.checked);
    remember('big', big.checked);
  };
  for (const select of /** @type {NodeListOf<HTMLSelectElement>} */ (document.querySelectorAll('.language'))) {
    select.onchange = async () => {
      await remember('language', select.value);
      useLanguage(select.value);
      if (document.body.dataset.screen === 'door') showReady();
      refresh();
    };
  }
  $('menu-place').onclick = () => {
    /** @type {HTMLDialogElement} */
    const menu = $('menu');
    menu.close();
    changePlace();
  };
  $('menu-sync').onclick = () => syncNow();
  $('menu-forget').onclick = async () => {
    const unsent = await unsentCount();
    $('forget-unsent').textContent = unsent > 0 ? t('forgetUnsent', { count: unsent }) : '';
    if ((await ask('forget')) !== 'yes') return;
    await forgetEverything();
    location.reload();
  };

  $('type-open').onclick = async () => {
    /** @type {HTMLInputElement} */
    const field = $('type-field');
    field.value = '';
    if ((await ask('type')) === 'yes' && field.value.trim()) scan(field.value);
  };

  $('undo-open').onclick = async () => {
    const last = await undoable();
    if (!last) return show({ colour: '', word: t('undo'), detail: t('undoTooLate') });
    $('undo-text').textContent = t('undoText', describe(last));
    /** @type {HTMLSelectElement} */
    const reason = $('undo-reason');
    if ((await ask('undo')) === 'yes') undoScan(last, reason.selectedOptions[0].text);
  };

  $('messages-open').onclick = async () => {
    const shown = await showMessages();
    if ((await ask('messages')) !== 'yes') return;
    // One that came meanwhile has not been read.
    await change(['messages'], async messages => {
      for (const { id } of shown) messages.delete(/** @type {number} */ (id));
    });
    refresh();
  };
  connection.addEventListener('change', refresh);
}

/** Fills the list; resolves to the messages in it. */
async function showMessages() {
  /** @type {import('./types.d.ts').Message[]} */
  const messages = await all('messages');
  const items = messages.toReversed().map(({ at, text, params }) => {
    const item = document.createElement('li');
    const time = document.createElement('time');
    time.dateTime = at;
    time.textContent = clockTime(at);
    const values = { ...params };
    if (params.time) values.time = clockTime(params.time);
    if (params.reason) values.reason = t(params.reason === 'already_redeemed' ? 'already_unknown' : params.reason);
    item.append(time, ' ', t(text, values));
    return item;
  });
  $('messages-list').replaceChildren(...items);
  return messages;
}

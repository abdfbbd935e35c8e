// Hand scanners type like a keyboard: quickly, and they end with Enter or Tab. They work wherever the focus is.

import { looksLikeTicketId, looksLikeToken } from './token.js';

/** A pause that ends a code: a scanner is much quicker, but the phone may be busy. */
const PAUSE_MS = 500;
/** Mean pause between two characters of a scanner; people are slower. */
const QUICK_MS = 60;
/** Shorter bursts are somebody's fingers. */
const SHORTEST = 6;

/**
 * What was typed since the last pause. A scanner that thinks of another keyboard than the phone's sends wrong
 * characters by the right keys, or the reverse: both are collected, and the one that makes sense is taken.
 * @typedef {object} Burst
 * @property {string} characters
 * @property {string} keys
 * @property {number} began
 * @property {{field: HTMLInputElement | HTMLTextAreaElement, value: string} | null} before the field that it went into
 */

/** @param {(text: string) => void} onText */
export function listenToHandScanner(onText) {
  /** @type {Burst} */
  let burst = { characters: '', keys: '', began: 0, before: null };
  let last = -PAUSE_MS;

  addEventListener(
    'keydown',
    event => {
      if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
      const now = event.timeStamp;
      if (now - last >= PAUSE_MS) burst = { characters: '', keys: '', began: now, before: fieldOf(event.target) };
      last = now;
      if (event.key === 'Enter' || event.key === 'Tab') {
        last = -PAUSE_MS;
        const { characters, keys, began, before } = burst;
        const ticket = [characters, keys].find(text => looksLikeToken(text.toUpperCase()) || looksLikeTicketId(text));
        const quick = characters.length >= SHORTEST && now - began < QUICK_MS * characters.length;
        // In a field, what is no ticket is left to the field.
        if (!ticket && (!quick || before)) return;
        event.preventDefault();
        event.stopPropagation();
        if (before) before.field.value = before.value;
        onText(ticket ?? keys);
      } else if (event.key.length === 1) {
        burst.characters += event.key;
        burst.keys += keyOf(event);
        // A space would press the button that has the focus.
        if (event.key === ' ' && burst.characters.length > 1 && !burst.before) event.preventDefault();
      }
    },
    { capture: true },
  );
}

/**
 * The character of a key on an English keyboard.
 * @param {KeyboardEvent} event
 */
function keyOf({ code, key }) {
  const named = /^(?:Key|Digit|Numpad)([A-Z0-9])$/.exec(code);
  if (named) return named[1];
  return code === 'Minus' ? '-' : key;
}

/** @param {EventTarget | null} target */
function fieldOf(target) {
  const isField = target instanceof HTMLTextAreaElement || (target instanceof HTMLInputElement && target.type !== 'checkbox');
  return isField ? { field: target, value: target.value } : null;
}

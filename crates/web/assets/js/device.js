// This device: its key, where it stands, its clock and its habits.

import { call, useKey } from './api.js';
import { get, setting } from './database.js';

/** @typedef {import('./types.d.ts').Me} Me */

/**
 * Where this device stands.
 * @typedef {object} Place
 * @property {string} event
 * @property {string} eventName
 * @property {string} list
 * @property {string} listName
 * @property {string | null} gate
 * @property {string | null} gateName
 * @property {import('./types.d.ts').Kind} kind
 */

/** Everything that is remembered of this device. */
export const device = {
  /** @type {string | null} */
  key: null,
  /** The last answer of `/api/checkin/me`. @type {Me | null} */
  me: null,
  /** @type {Place | null} */
  place: null,
  /** What to add to this phone's clock to get the server's, in milliseconds. */
  clockOffset: 0,
  sound: true,
  big: false,
  /** @type {string | null} */
  language: null,
  /** @type {string | null} */
  camera: null,
};

/** Reads what was remembered. */
export async function loadDevice() {
  for (const name of /** @type {(keyof typeof device)[]} */ (Object.keys(device))) {
    const value = await get('settings', name);
    if (value !== undefined) Reflect.set(device, name, value);
  }
  useKey(device.key);
}

/**
 * Changes and remembers.
 * @template {keyof typeof device} Name
 * @param {Name} name
 * @param {(typeof device)[Name]} value
 */
export async function remember(name, value) {
  device[name] = value;
  if (name === 'key') useKey(device.key);
  await setting(name, value);
}

/** The time by the server's clock. */
export const serverNow = () => Date.now() + device.clockOffset;

/**
 * Learns the difference between the clocks from an answer: the server wrote it in the middle of the call.
 * @param {string} serverTime
 * @param {number} asked
 */
export async function noteServerTime(serverTime, asked) {
  const offset = Math.round(Date.parse(serverTime) - (asked + Date.now()) / 2);
  if (Number.isFinite(offset) && Math.abs(offset - device.clockOffset) > 500) await remember('clockOffset', offset);
}

/** Asks what this key may open. */
export async function refreshMe() {
  const asked = Date.now();
  /** @type {Me} */
  const me = await call('GET', '/api/checkin/me');
  await noteServerTime(me.serverTime, asked);
  await remember('me', me);
  return me;
}

/**
 * Gives this device the key of an enrolment code.
 * @param {string} code
 */
export async function enrol(code) {
  useKey(null);
  const { key } = await call('POST', '/api/checkin/enrol', { body: { code } });
  await remember('key', key);
}

// A scan from the text of a code to the verdict.
//
//   text ─▶ noted on the phone ─▶ the server is asked ─ answers ─▶ its verdict
//                                        │
//                                        └ no word within two seconds, or known to be away ─▶ the phone decides

import { Refused, Unreachable, call, connection } from './api.js';
import { decide, isNews, passed } from './decide.js';
import { device, serverNow } from './device.js';
import { admission, drop, interrupted, isUnknownToServer, note, outbox, send, settle, undo, unsentCount } from './outbox.js';
import { newNonce } from './page.js';
import { sync, syncNow } from './sync.js';
import { clockTime, t } from './texts.js';
import { isSignedBy, looksLikeTicketId, readToken } from './token.js';
import { person, reasonText, show } from './verdict.js';

/** @typedef {import('./types.d.ts').Redeemed} Redeemed */
/** @typedef {import('./types.d.ts').ScanRecord} ScanRecord */
/** @typedef {import('./types.d.ts').Verdict} Verdict */
/** @typedef {import('./device.js').Place} Place */

/** A server that has not answered by then is away. */
const PATIENCE_MS = 2_000;
/** After as long without a word, a phone is not certain any more. */
const CERTAIN_MS = 10 * 60_000;
/** A scan that was interrupted longer ago is nobody's who still stands there. */
const STILL_THERE_MS = 120_000;
/** The same code is not read again while it is in view, nor for as long after. */
const SAME_CODE_MS = 2_500;

let seen = { text: '', until: 0 };
/** One scan after the other. @type {Promise<void>} */
let turn = Promise.resolve();
let waiting = 0;

/**
 * A code in front of the camera: read once.
 * @param {string} text
 */
export function seenByCamera(text) {
  const now = performance.now();
  const same = text === seen.text && now < seen.until;
  if (same) seen.until = now + SAME_CODE_MS;
  if (same || waiting > 0) return;
  seen = { text, until: now + SAME_CODE_MS };
  scan(text);
}

/**
 * A code from a hand scanner, the keyboard or a photo.
 * @param {string} text
 */
export function scan(text) {
  waiting++;
  turn = turn.then(async () => {
    try {
      await handle(text.trim());
    } catch (error) {
      console.warn(error);
      show({ colour: 'warn', word: t('look'), detail: t('saveFailed', { detail: String(error) }) });
    } finally {
      waiting--;
    }
  });
  return turn;
}

/** @param {string} text */
async function handle(text) {
  const { place } = device;
  if (!place) return;
  const upper = text.toUpperCase();
  const token = readToken(upper);
  const ticketId = looksLikeTicketId(text) ? text.toLowerCase() : null;
  // What is no ticket is nobody's business: it never leaves the phone.
  if (!token && !ticketId) return show(refusal('malformed', {}));
  show({ colour: '', word: t('checking') });
  /** @type {ScanRecord} */
  const record = {
    type: 'scan',
    nonce: newNonce(),
    ...(token ? { token: upper } : { ticketId: ticketId ?? '' }),
    target: place.event,
    list: place.list,
    gate: place.gate,
    gateName: place.gateName,
    kind: place.kind,
    at: new Date().toISOString(),
    state: 'asking',
    offline: false,
    verdict: null,
    serial: token?.event === place.event ? token.serial : null,
    name: null,
    seat: null,
    before: null,
  };
  await note(record);
  const asked = connection.online;
  const answer = asked ? await askServer(record) : null;
  if (answer) return show(answer);
  show(await decideHere(record, place, asked));
  syncNow();
}

/**
 * Asks the server; null if there is no word from it in time.
 * @param {ScanRecord} record
 * @returns {Promise<Verdict | null>}
 */
async function askServer(record) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** @type {Promise<never>} */
  const patience = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Unreachable('no word in time')), PATIENCE_MS);
  });
  try {
    // What is answered later is not looked at: the phone has decided by then.
    return await settleAnswer(record, await Promise.race([question(record), patience]));
  } catch (error) {
    if (error instanceof Unreachable) return null;
    if (!(error instanceof Refused)) throw error;
    await drop(record);
    if (error.status === 401) return { colour: 'warn', word: t('look'), detail: t('keyInvalid'), todo: t('keyInvalid_do') };
    return { colour: 'warn', word: t('look'), detail: t('serverRefused', { detail: error.message }) };
  } finally {
    clearTimeout(timer);
  }
}

/** @param {ScanRecord} record @returns {Promise<Redeemed>} */
async function question({ token, ticketId, target, list, gate, nonce, kind, at, serial }) {
  const until = performance.now() + PATIENCE_MS;
  // The server must know what this phone has let in before it can decide.
  if ((await unsentCount()) > 0) {
    await send(PATIENCE_MS);
    if (serial !== null && (await isUnknownToServer(list, serial))) throw new Unreachable('it has not taken an earlier scan');
  }
  const timeout = Math.floor(until - performance.now());
  if (timeout <= 0) throw new Unreachable('no time left');
  const body = { ...(token ? { token } : { ticketId }), target, list, gate: gate ?? undefined, nonce, kind, at };
  return call('POST', '/api/checkin/redeem', { body, timeout });
}

/**
 * Notes the server's answer and puts it into words.
 * @param {ScanRecord} record
 * @param {Redeemed} answer
 * @returns {Promise<Verdict>}
 */
async function settleAnswer(record, answer) {
  const { ticket } = answer;
  const serial = record.serial ?? ticket?.number ?? null;
  const own = serial === null ? null : await admission(record.list, serial);
  const settled = { ...record, state: /** @type {const} */ ('done'), verdict: answer.result, serial, name: ticket?.name ?? null, seat: ticket?.seat ?? null, before: own };
  await settle(settled, answer.ok && serial !== null ? {
    list: record.list,
    serial,
    used: answer.entries ?? (own?.used ?? 0) + 1,
    inside: answer.inside ?? record.kind === 'entry',
    at: answer.at,
    gateName: record.gateName,
    nonce: record.nonce,
    seq: answer.seq,
  } : null);
  const { who, where } = person({ name: ticket?.name, seat: ticket?.seat, number: ticket?.number });
  if (answer.ok) return { colour: 'ok', word: t(record.kind === 'entry' ? 'comeIn' : 'goOut'), who, detail: where };
  const list = sync.tickets?.list(record.list);
  const no = refusal(answer.result, { previous: answer.previous, event: answer.event?.name, list: list?.name ?? device.place?.listName, opensAt: list?.opensAt, closesAt: list?.closesAt });
  return { ...no, who: [who, where].filter(Boolean).join(' · ') };
}

/**
 * Decides without the server and notes that.
 * @param {ScanRecord} record
 * @param {Place} place
 * @param {boolean} asked whether the server was asked
 * @returns {Promise<Verdict>}
 */
async function decideHere(record, place, asked) {
  const { tickets } = sync;
  const list = tickets?.list(record.list);
  const obstacle = await whyNotHere(record);
  const token = readToken(record.token ?? '');
  if (obstacle || !tickets || !list || !token) {
    // The question may have reached the server all the same, and the guest stands outside.
    await (asked ? undo({ ...record, state: 'done' }, 'not decided') : drop(record));
    return { colour: 'warn', word: t('look'), who: t('cannotCheck'), detail: t(obstacle ?? 'cannotCheckBundle'), todo: t('cannotCheck_do') };
  }
  const key = token.event === tickets.target ? tickets.key(token.key) : null;
  const signed = key !== null && (await isSignedBy(token, key.publicKey));
  const own = record.serial === null ? null : await admission(list.id, record.serial);
  const { result, doubt } = decide({ token, signed, tickets, list, own, kind: place.kind, now: serverNow() });
  const settled = { ...record, state: /** @type {const} */ ('unsent'), offline: true, verdict: result, before: own };
  const known = isNews(own, tickets) ? own : null;
  await settle(settled, result === 'ok' ? passed(known, list, { ...record, serial: token.serial }) : null);
  const silent = connection.heardAt === null ? Infinity : Date.now() - connection.heardAt;
  const old = silent > CERTAIN_MS ? t('uncertainOld', { minutes: Number.isFinite(silent) ? Math.floor(silent / 60_000) : '…' }) : null;
  const who = t('number', { number: token.serial });
  if (result === 'ok') {
    const uncertain = doubt ? t(doubt) : old;
    const word = t(record.kind === 'entry' ? 'comeIn' : 'goOut');
    if (uncertain) return { colour: 'warn', word: t('look'), who, detail: uncertain };
    return { colour: 'ok', word, who, detail: t('decidedOffline') };
  }
  const event = device.me?.events.find(other => other.id === token.event)?.name ?? null;
  const previous = own ? { at: own.at, gateName: own.gateName ?? t('thisGate') } : null;
  const no = refusal(result, { previous, event, list: list.name, opensAt: list.opensAt, closesAt: list.closesAt });
  return { ...no, who: record.serial === null ? '' : who };
}

/**
 * Why this phone cannot decide by itself; the name of a text.
 * @param {ScanRecord} record
 */
async function whyNotHere({ token }) {
  if (!token) return 'cannotCheckTyped';
  if (!globalThis.crypto?.subtle) return 'cannotCheckPlain';
  try {
    await crypto.subtle.generateKey('Ed25519', false, ['sign', 'verify']);
  } catch {
    return 'cannotCheckBrowser';
  }
  return null;
}

/**
 * @param {import('./types.d.ts').Result} reason
 * @param {Parameters<typeof reasonText>[1]} about
 * @returns {Verdict}
 */
const refusal = (reason, about) => ({ colour: 'no', word: t('no'), detail: reasonText(reason, about), todo: t(reason + '_do') });

/** Scans that a reload interrupted: the guest still stands there, or the scan is taken back. */
export async function resume() {
  for (const record of await interrupted()) {
    const age = Date.now() - Date.parse(record.at);
    if (age < STILL_THERE_MS && connection.online) {
      const answer = await askServer(record);
      if (answer) {
        show(answer);
        continue;
      }
    }
    await undo({ ...record, state: 'done' }, 'interrupted');
  }
}

/**
 * Undoes the last scan of this phone.
 * @param {ScanRecord} record
 * @param {string} reason
 */
export async function undoScan(record, reason) {
  await undo(record, reason);
  const who = record.name || t('number', { number: record.serial ?? '' });
  show({ colour: '', word: t('undone'), detail: t('undoneText', { who }) });
  seen = { text: '', until: 0 };
  await syncNow();
  outbox.dispatchEvent(new Event('change'));
}

/** Who and when, for the question before an undo. @param {ScanRecord} record */
export const describe = record => ({ who: record.name || t('number', { number: record.serial ?? '' }), time: clockTime(record.at) });

// Scans on their way to the server. A scan is written down before anybody is asked, and again with its outcome:
//
//               ┌─ the server answers ───────────────────────────▶ done
//   asking ─────┤
//               └─ no word: the phone decides ─▶ unsent ─ sent ─▶ done      an undo goes the same way, after its scan
//
// Scans are sent in order and by one page at a time. The server knows a scan by its nonce, so an answer that was lost on
// its way back is asked for again and nothing is counted twice.
//
// A guest who was let in is inside, whatever the server says: such a scan is done when the server has decided it. If the
// server does not take it, it stays unsent, is told and tried again later, and does not hold up the others.

import { Refused, Unreachable, call } from './api.js';
import { all, change, done, get, scansIn } from './database.js';
import { noteServerTime } from './device.js';
import { t } from './texts.js';

/** @typedef {import('./types.d.ts').ScanRecord} ScanRecord */
/** @typedef {import('./types.d.ts').Redeemed} Redeemed */
/** @typedef {import('./types.d.ts').Admission} Admission */

/** Scans in one call; the server takes 1,000. */
const AT_ONCE = 200;
/** Scans that are kept after they were sent. */
const KEPT = 100;
/** How long a scan may be undone. */
const UNDO_MS = 15 * 60_000;
/** Pause before a scan that the server did not take is sent again. */
const HELD_MS = 5 * 60_000;
/** A question that was given up may reach the server as long after; until then its undo is repeated. */
const LATE_MS = 60_000;
/** Pause before such an undo is repeated. */
const REPEAT_MS = 5_000;

/** Fires `change` when a scan was noted or sent, and `message` when the server disagrees. */
export const outbox = new EventTarget();
const changed = () => outbox.dispatchEvent(new Event('change'));

/** @param {ScanRecord} scan */
export async function note(scan) {
  scan.order = /** @type {number} */ (await change(['scans'], scans => done(scans.add(scan))));
}

/** Forgets a scan that was not decided. @param {ScanRecord} scan */
export const drop = scan => change(['scans'], scans => done(scans.delete(/** @type {number} */ (scan.order))));

/**
 * Writes the outcome of a scan, and what this phone knows of the ticket now.
 * @param {ScanRecord} scan
 * @param {Admission | null} admission null: nobody passed
 */
export async function settle(scan, admission) {
  await change(['scans', 'admissions'], async (scans, admissions) => {
    await done(scans.put(scan));
    if (admission) await done(admissions.put(admission));
  });
  changed();
}

/** How many scans the server does not know of. */
export const unsentCount = async () => (await scansIn('unsent')).length;

/** The events of the scans that the server does not know of. */
export const unsentEvents = async () => [...new Set((await scansIn('unsent')).map(({ target }) => target))];

/** Scans whose answer never came, because the page was closed meanwhile. */
export const interrupted = () => scansIn('asking');

/** Removes scans that were sent long ago. */
export async function tidy() {
  const old = [...(await scansIn('done')).slice(0, -KEPT), ...(await scansIn('undone')).slice(0, -KEPT)];
  await change(['scans'], async scans => {
    for (const scan of old) scans.delete(/** @type {number} */ (scan.order));
  });
}

/** The last scan that let somebody pass, if it can still be undone. @returns {Promise<ScanRecord | null>} */
export async function undoable() {
  /** @type {ScanRecord[]} */
  const scans = await all('scans');
  const passed = scans.filter(scan => scan.type === 'scan' && scan.verdict === 'ok' && scan.state !== 'asking');
  const last = passed.findLast(scan => scan.state !== 'undone' && !scan.undone);
  return last && Date.now() - Date.parse(last.at) < UNDO_MS ? last : null;
}

/**
 * Undoes a scan: on this phone at once, on the server as soon as it is reached.
 * @param {ScanRecord} scan
 * @param {string} reason
 */
export async function undo(scan, reason) {
  const request = { ...scan, type: 'undo', state: 'unsent', reason };
  delete request.order;
  delete request.refused;
  await change(['scans', 'admissions'], async (scans, admissions) => {
    const current = scan.serial === null ? null : await done(admissions.get([scan.list, scan.serial]));
    if (scan.serial !== null && current?.nonce === scan.nonce) {
      const earlier = scan.before ?? { ...current, used: Math.max(0, current.used - 1), inside: false };
      await done(admissions.put({ ...earlier, seq: null, undo: scan.nonce }));
    }
    // A scan that is not sent yet goes first: the server's log shows both.
    if (scan.state === 'done') await done(scans.put({ ...scan, state: 'undone' }));
    else await done(scans.put({ ...scan, undone: true }));
    await done(scans.add(request));
  });
  changed();
}

/**
 * Sends everything with the present key, before it changes: another device's key cannot undo this one's scans.
 * @returns {Promise<number>} how many stay unsent
 */
export async function sendBeforeChange() {
  for (const scan of await interrupted()) await undo({ ...scan, state: 'done' }, 'interrupted');
  held.clear();
  try {
    await send();
  } catch (error) {
    if (!(error instanceof Refused || error instanceof Unreachable)) throw error;
  }
  return unsentCount();
}

/** Records that the server did not take, by their order, and when they are sent again. @type {Map<number, number>} */
const held = new Map();

/** @param {ScanRecord} scan @param {number} pause */
const hold = (scan, pause) => held.set(/** @type {number} */ (scan.order), performance.now() + pause);

/** @param {ScanRecord} scan */
const isHeld = scan => (held.get(/** @type {number} */ (scan.order)) ?? 0) > performance.now();

/** @type {Promise<void> | null} */
let sending = null;

/**
 * Sends everything that is unsent, in order; rejects if the server does not answer, or refuses the key.
 * @param {number} [timeout]
 */
export function send(timeout) {
  const work = () => sendAll(timeout);
  // Two pages on one phone must not send at the same time. Without TLS there are no locks, and rarely two pages.
  const exclusive = () => (navigator.locks ? navigator.locks.request('stampede-gate-outbox', work) : work());
  sending ??= Promise.resolve(exclusive()).finally(() => (sending = null));
  return sending;
}

/** @param {number} [timeout] */
async function sendAll(timeout) {
  for (;;) {
    const unsent = await scansIn('unsent');
    const known = new Set(unsent.filter(isHeld).map(({ nonce }) => nonce));
    // An undo waits for its scan.
    const waiting = unsent.filter(scan => !isHeld(scan) && !(scan.type === 'undo' && known.has(scan.nonce)));
    if (waiting.length === 0) return;
    if (waiting[0].type === 'undo') {
      await sendUndo(waiting[0], timeout);
    } else {
      // Up to the next undo, and of one event.
      const other = waiting.findIndex(scan => scan.type === 'undo' || scan.target !== waiting[0].target);
      const scans = waiting.slice(0, Math.min(AT_ONCE, other < 0 ? waiting.length : other));
      await sendScans(scans, unsent.length - scans.length, timeout);
    }
    changed();
  }
}

/**
 * @param {ScanRecord[]} scans
 * @param {number} rest how many stay unsent
 * @param {number} [timeout]
 */
async function sendScans(scans, rest, timeout) {
  const asked = Date.now();
  const body = { deviceNow: new Date().toISOString(), unsent: rest, target: scans[0].target, scans: scans.map(onTheWire) };
  let answer;
  try {
    answer = await call('POST', '/api/checkin/scans', { body, timeout });
  } catch (error) {
    if (!(error instanceof Refused) || error.status === 401) throw error;
    // One scan that the server does not take must not hold up the others; but no event, or none of this key's, is so for all.
    const half = error.status === 403 || error.status === 404 ? 0 : scans.length >> 1;
    if (half === 0) return keep(scans, error);
    await sendScans(scans.slice(0, half), rest + scans.length - half, timeout);
    return sendScans(scans.slice(half), rest, timeout);
  }
  await noteServerTime(answer.serverTime, asked);
  /** @type {Map<string, Redeemed>} */
  const results = new Map(answer.results.map((/** @type {any} */ result) => [result.nonce, result]));
  for (const scan of scans) {
    const result = results.get(scan.nonce);
    if (!result) {
      hold(scan, HELD_MS);
      continue;
    }
    await finish(scan, result);
  }
}

/**
 * The server does not take these scans: they stay, and that is told once. A scan with which nobody passed, or that was
 * undone, is finished: the server needs it for its log only. If the key may not send it, another one may.
 * @param {ScanRecord[]} scans
 * @param {Refused} error
 */
async function keep(scans, error) {
  const detail = error.message;
  for (const scan of scans) hold(scan, HELD_MS);
  // The message is part of the same change: a page that is closed now has told it, or tells it next time.
  await change(['scans', 'messages'], async (store, messages) => {
    const news = [];
    for (const { order } of scans) {
      /** @type {ScanRecord | undefined} */
      const scan = await done(store.get(/** @type {number} */ (order)));
      if (!scan) continue;
      if (scan.refused !== detail) news.push(scan);
      const needed = error.status === 403 || (scan.verdict === 'ok' && !scan.undone);
      await done(store.put({ ...scan, refused: detail, state: needed ? 'unsent' : scan.undone ? 'undone' : 'done' }));
    }
    if (news.length === 1) await leave(messages, 'sentRefused', { ...about(news[0]), detail });
    else if (news.length > 1) await leave(messages, 'sentRefusedMany', { count: String(news.length), detail });
  });
  outbox.dispatchEvent(new Event('message'));
}

/** @param {ScanRecord} scan */
function onTheWire({ nonce, token, ticketId, list, gate, kind, at, verdict }) {
  const shown = token ? { token } : { ticketId };
  return { nonce, ...shown, list, gate: gate ?? undefined, kind, at, offline: true, verdict };
}

/**
 * The server knows the scan now. If it disagrees, that is told.
 * @param {ScanRecord} sent
 * @param {Redeemed} result
 */
async function finish(sent, result) {
  await change(['scans', 'admissions', 'messages'], async (scans, admissions, messages) => {
    // It may have been undone meanwhile.
    /** @type {ScanRecord | undefined} */
    const scan = await done(scans.get(/** @type {number} */ (sent.order)));
    if (!scan) return;
    const state = scan.undone ? 'undone' : 'done';
    await done(scans.put({ ...scan, state, name: result.ticket?.name ?? scan.name, seat: result.ticket?.seat ?? scan.seat }));
    const letIn = scan.verdict === 'ok';
    if (letIn !== result.ok && !scan.undone) {
      const who = result.ticket?.name;
      await leave(messages, letIn ? 'conflict' : 'conflictOther', { ...about(scan), ...(who ? { who } : {}), reason: result.result });
    }
    if (scan.serial === null) return;
    /** @type {Admission | undefined} */
    const own = await done(admissions.get([scan.list, scan.serial]));
    // Only if no later scan or undo of this phone has changed it.
    if (own?.nonce === scan.nonce && own.seq === null && state === 'done' && result.seq !== null) {
      own.seq = result.seq;
      own.used = result.entries ?? own.used;
      own.inside = result.inside ?? own.inside;
      await done(admissions.put(own));
    }
  });
  outbox.dispatchEvent(new Event('message'));
}

/** @param {ScanRecord} request @param {number} [timeout] */
async function sendUndo(request, timeout) {
  try {
    await call('POST', '/api/checkin/undo', { body: { nonce: request.nonce, reason: request.reason }, timeout });
  } catch (error) {
    if (!(error instanceof Refused) || error.status === 401) throw error;
    if (error.status === 403) return keep([request], error);
    // The question itself may still be on its way: nobody has waited for its answer.
    const late = request.verdict === null && Date.now() - Date.parse(request.at) < LATE_MS;
    if (error.status === 404 && late) {
      hold(request, REPEAT_MS);
      return;
    }
    // A scan that the server has never seen, or has refused, needs no undo.
    if (error.status !== 404 && error.code !== 'nothing_to_undo') await tell('undoFailed', { ...about(request), detail: error.message });
  }
  await finishUndo(request);
}

/**
 * The server has answered the undo: from now on its word counts, and that of this phone's scan before, if there was one.
 * @param {ScanRecord} request
 */
async function finishUndo(request) {
  const { before } = request;
  const isUnsent = before !== null && (await scansIn('unsent')).some(scan => scan.type === 'scan' && scan.nonce === before.nonce);
  await change(['scans', 'admissions'], async (scans, admissions) => {
    await done(scans.delete(/** @type {number} */ (request.order)));
    if (request.serial === null) return;
    /** @type {Admission | undefined} */
    const own = await done(admissions.get([request.list, request.serial]));
    if (own?.undo !== request.nonce) return;
    const seq = own.seq ?? before?.seq ?? null;
    delete own.undo;
    if (seq !== null || isUnsent) await done(admissions.put({ ...own, seq }));
    else await done(admissions.delete([request.list, request.serial]));
  });
}

/** @param {ScanRecord} scan */
function about(scan) {
  const number = scan.serial === null ? '' : t('number', { number: scan.serial });
  return { who: scan.name || number || t('guest'), time: scan.at };
}

/**
 * Leaves a message on this phone until somebody has read it.
 * @param {string} text
 * @param {Record<string, string>} params
 */
export async function tell(text, params) {
  await change(['messages'], messages => leave(messages, text, params));
  outbox.dispatchEvent(new Event('message'));
}

/**
 * Adds a message, as a part of a change.
 * @param {IDBObjectStore} messages
 * @param {string} text
 * @param {Record<string, string>} params
 */
const leave = (messages, text, params) => done(messages.add({ at: new Date().toISOString(), text, params }));

/** What this phone knows of a ticket. @param {string} list @param {number} serial @returns {Promise<Admission | null>} */
export const admission = async (list, serial) => (await get('admissions', [list, serial])) ?? null;

/** Whether this phone has let a ticket pass and the server does not know of it. @param {string} list @param {number} serial */
export async function isUnknownToServer(list, serial) {
  const unsent = await scansIn('unsent');
  return unsent.some(scan => scan.type === 'scan' && scan.verdict === 'ok' && scan.list === list && scan.serial === serial);
}

/** Everything this phone has let pass on a list. @param {string} list @returns {Promise<Admission[]>} */
export const admissionsOn = async list => (await all('admissions')).filter(own => own.list === list);

// Keeps phone and server together: every 15 seconds, when the network comes back, and when the page is looked at again.
// While the server does not answer, it is tried every few seconds: not every browser tells that the network is back, and
// none tells that the server is.

import { Refused, Unreachable, call, connection } from './api.js';
import { Damaged, Tickets, unpack } from './bundle.js';
import { change, done, get } from './database.js';
import { device, noteServerTime } from './device.js';
import { send, tell } from './outbox.js';

const EVERY_MS = 15_000;
/** Pause while the server does not answer, and what chance adds, so that a hundred phones do not come at once. */
const AWAY_MS = 2_000;
const AWAY_SPREAD_MS = 2_000;

/** Fires `change` when the tickets of the event are other ones. */
export const sync = Object.assign(new EventTarget(), {
  /** The tickets of the chosen event; null: not received yet. @type {Tickets | null} */
  tickets: /** @type {Tickets | null} */ (null),
});

/** @type {Promise<void> | null} */
let running = null;
/** Somebody has asked since the present round began: what they want may be too late for it. */
let wanted = false;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
let toldDamaged = false;

/** Takes what was received earlier for the chosen event. */
export async function loadTickets() {
  const kept = device.place ? await get('bundles', device.place.event) : null;
  sync.tickets = kept ? new Tickets(kept) : null;
  connection.heardAt ??= kept?.receivedAt ?? null;
  sync.dispatchEvent(new Event('change'));
}

/**
 * Sends what is unsent, asks for what has changed, and comes again. During a round it makes another one follow: the
 * present one may have failed already because of a network that is back now. Never rejects.
 */
export function syncNow() {
  wanted = true;
  // What is unsent does not wait for tickets that are slow to come.
  if (running) attempt(send);
  else running = rounds();
  return running;
}

async function rounds() {
  clearTimeout(timer);
  do {
    wanted = false;
    await attempt(synchronise);
  } while (wanted);
  running = null;
  timer = setTimeout(syncNow, connection.online ? EVERY_MS : AWAY_MS + Math.random() * AWAY_SPREAD_MS);
}

async function synchronise() {
  await send();
  if (device.place) await fetchBundle(device.place.event);
}

/** Does work that needs the server. Never rejects. @param {() => Promise<void>} work */
async function attempt(work) {
  if (!device.key || connection.keyRefused) return;
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Unreachable || error instanceof Refused)) console.warn(error);
  }
}

/**
 * Asks for what has changed, and for everything if that does not fit.
 * @param {string} event
 */
export async function fetchBundle(event) {
  const before = (await get('bundles', event)) ?? null;
  let kept;
  try {
    kept = await ask(event, before);
    toldDamaged = false;
  } catch (error) {
    if (!(error instanceof Damaged)) throw error;
    try {
      kept = await ask(event, null);
    } catch (again) {
      if (again instanceof Damaged && !toldDamaged) {
        toldDamaged = true;
        await tell('damaged', {});
      }
      throw again instanceof Damaged ? new Unreachable('damaged bundle') : again;
    }
  }
  await change(['bundles'], bundles => done(bundles.put(kept)));
  if (device.place?.event === event) {
    sync.tickets = new Tickets(kept);
    sync.dispatchEvent(new Event('change'));
  }
  return kept;
}

/** @param {string} event @param {import('./bundle.js').Kept | null} before */
async function ask(event, before) {
  const asked = Date.now();
  const since = before ? `&since=${before.seq}` : '';
  const bundle = await call('GET', `/api/checkin/bundle?target=${event}${since}`, { timeout: 30_000 });
  await noteServerTime(bundle.serverTime, asked);
  return unpack(bundle, before);
}

addEventListener('online', () => syncNow());
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) syncNow();
});

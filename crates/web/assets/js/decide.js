// Whether a ticket may pass, decided on the phone. Pure: no network, no database, no clock.
// The order of the questions is the server's (crates/model/src/check_in.rs).

/** @typedef {import('./types.d.ts').Admission} Admission */
/** @typedef {import('./types.d.ts').Kind} Kind */
/** @typedef {import('./types.d.ts').List} List */
/** @typedef {import('./types.d.ts').Result} Result */
/** @typedef {import('./token.js').Token} Token */
/** @typedef {import('./bundle.js').Tickets} Tickets */

/**
 * `doubt` names a text if the guest may pass, but the phone cannot be certain.
 * @typedef {{result: Result, doubt: string | null}} Decision
 */

/**
 * @typedef {object} Case
 * @property {Token} token
 * @property {boolean} signed whether the key that the token names signed it
 * @property {Tickets} tickets what the phone knows of the event
 * @property {List} list
 * @property {Admission | null} own what this phone knows of the ticket
 * @property {Kind} kind
 * @property {number} now by the server's clock
 */

/**
 * @param {Case} given
 * @returns {Decision}
 */
export function decide({ token, signed, tickets, list, own, kind, now }) {
  /** @param {Result} result @param {string | null} doubt */
  const say = (result, doubt = null) => ({ result, doubt });
  if (token.version !== 1) return say('unknown');
  if (token.event !== tickets.target) return say('wrong_event');
  const key = tickets.key(token.key);
  if (!key) return say('unknown');
  if (!signed) return say('forged');
  const known = isNews(own, tickets) ? own : null;
  if (kind === 'exit') {
    if (known) return say(known.inside ? 'ok' : 'not_inside');
    return say('ok', tickets.isUsedUp(list.id, token.serial) ? null : 'uncertainExit');
  }
  if (tickets.isVoid(token.serial)) return say('void');
  if (key.revoked) return say('revoked_key');
  if (tickets.generation(token.serial) !== token.generation) return say('superseded');
  if (tickets.isBlocked(token.serial)) return say('blocked');
  if (!tickets.isMember(list.id, token.serial)) return say('not_on_list');
  if (list.opensAt && now < Date.parse(list.opensAt)) return say('not_yet');
  if (list.closesAt && now >= Date.parse(list.closesAt)) return say('expired');
  if (list.entries === 0) return say('ok');
  const usedUp = known ? known.used >= list.entries : tickets.isUsedUp(list.id, token.serial);
  if (usedUp) return say('already_redeemed');
  return say('ok', list.entries > 1 || list.reentry ? 'uncertainEntries' : null);
}

/**
 * Whether this phone knows more of a ticket than the last word of the server says.
 * @param {Admission | null} own
 * @param {Tickets} tickets
 */
export const isNews = (own, tickets) => own !== null && (own.seq === null || own.seq > tickets.seq);

/**
 * What the phone knows of a ticket after it has let it pass.
 * @param {Admission | null} own
 * @param {List} list
 * @param {{serial: number, kind: Kind, at: string, gateName: string | null, nonce: string}} scan
 * @returns {Admission}
 */
export function passed(own, list, { serial, kind, at, gateName, nonce }) {
  const before = own?.used ?? 0;
  const used = kind === 'entry' ? before + 1 : list.reentry ? Math.max(0, before - 1) : before;
  return { list: list.id, serial, used, inside: kind === 'entry', at, gateName, nonce, seq: null };
}

// The tickets of an event, as the server packs them for phones without a network: keys, lists, gates, and which
// tickets are void, reissued, blocked or used up. Names are not in it.
//
// The first bundle is whole; later ones have only what changed since the number `seq` of the last. The checksum covers
// all of it: a bundle that was cut off or altered on its way is refused, and a whole one is asked for.

/** @typedef {import('./types.d.ts').List} List */
/** @typedef {import('./types.d.ts').Gate} Gate */

/**
 * What is kept of an event; numbers of tickets are bits of `voided`, `members` and `usedUp`.
 * @typedef {object} Kept
 * @property {string} target
 * @property {string} name
 * @property {number} seq
 * @property {number} capacity
 * @property {{kid: number, publicKey: Uint8Array, revoked: boolean}[]} keys
 * @property {List[]} lists
 * @property {Gate[]} gates
 * @property {Uint8Array} voided
 * @property {Map<number, number>} generations only those that are not 1
 * @property {Uint8Array} [blocked] absent in what earlier versions kept
 * @property {Map<string, Uint8Array>} members lists that are not for everybody
 * @property {Map<string, Uint8Array>} usedUp
 * @property {number} receivedAt by this phone's clock
 */

/** The bundle is not what the server sent. */
export class Damaged extends Error {}

/** Questions about the tickets of an event. */
export class Tickets {
  /** @param {Kept} kept */
  constructor(kept) {
    this.kept = kept;
  }

  get target() {
    return this.kept.target;
  }

  get seq() {
    return this.kept.seq;
  }

  /** @param {string} id */
  list(id) {
    return this.kept.lists.find(list => list.id === id) ?? null;
  }

  /** @param {number} kid */
  key(kid) {
    return this.kept.keys.find(key => key.kid === kid) ?? null;
  }

  /** @param {number} serial */
  isVoid(serial) {
    return has(this.kept.voided, serial);
  }

  /** @param {number} serial */
  generation(serial) {
    return this.kept.generations.get(serial) ?? 1;
  }

  /** @param {number} serial */
  isBlocked(serial) {
    return this.kept.blocked !== undefined && has(this.kept.blocked, serial);
  }

  /** @param {string} list @param {number} serial */
  isMember(list, serial) {
    const members = this.kept.members.get(list);
    return !members || has(members, serial);
  }

  /** @param {string} list @param {number} serial */
  isUsedUp(list, serial) {
    const used = this.kept.usedUp.get(list);
    return used !== undefined && has(used, serial);
  }

  /** How many tickets have no entry left on a list. @param {string} list */
  usedUpCount(list) {
    let count = 0;
    for (const byte of this.kept.usedUp.get(list) ?? []) {
      for (let bits = byte; bits; bits &= bits - 1) count++;
    }
    return count;
  }
}

/** @param {Uint8Array} bitmap @param {number} number */
const has = (bitmap, number) => ((bitmap[number >> 3] ?? 0) & (1 << (number & 7))) !== 0;

/** @param {Uint8Array} bitmap @param {number} number @param {boolean} value */
function put(bitmap, number, value) {
  if (value) bitmap[number >> 3] |= 1 << (number & 7);
  else bitmap[number >> 3] &= ~(1 << (number & 7));
}

/**
 * A bitmap for numbers up to `largest`, with the bits of another.
 * @param {number} largest
 * @param {Uint8Array | undefined} from
 */
function bitmap(largest, from) {
  const bits = new Uint8Array((largest >> 3) + 1);
  if (from) bits.set(from.subarray(0, bits.length));
  return bits;
}

/**
 * Reads a bundle of the server into what is kept.
 * @param {any} bundle
 * @param {Kept | null} before what was kept; a bundle that is not whole changes it
 * @returns {Promise<Kept>}
 */
export async function unpack(bundle, before) {
  await check(bundle);
  if (!bundle.full && bundle.since !== before?.seq) throw new Damaged('the bundle does not follow the last one');
  const old = bundle.full ? null : before;
  const { capacity } = bundle;
  const voided = bitmap(capacity, old?.voided);
  for (const serial of serials(bundle.voided)) put(voided, serial, true);
  const generations = new Map(old?.generations);
  const numbers = varints(bundle.generations);
  for (let i = 0, serial = 0; i + 1 < numbers.length; i += 2) {
    serial += numbers[i];
    generations.set(serial, numbers[i + 1]);
  }
  // All of them, in changes too: a block can be lifted.
  const blocked = bitmap(capacity, undefined);
  for (const serial of serials(bundle.blocked ?? '')) put(blocked, serial, true);
  const members = new Map();
  const usedUp = new Map();
  for (const { id, members: packed } of bundle.lists) {
    if (packed !== null) members.set(id, bytesOf(packed));
    const used = bitmap(capacity, old?.usedUp.get(id));
    for (const serial of serials(bundle.admitted[id] ?? '')) put(used, serial, true);
    for (const serial of serials(bundle.readmitted[id] ?? '')) put(used, serial, false);
    usedUp.set(id, used);
  }
  return {
    target: bundle.target,
    name: bundle.name,
    seq: bundle.seq,
    capacity,
    keys: bundle.keys.map((/** @type {any} */ key) => ({ ...key, publicKey: bytesOf(key.publicKey) })),
    lists: bundle.lists,
    gates: bundle.gates,
    voided,
    generations,
    blocked,
    members,
    usedUp,
    receivedAt: Date.now(),
  };
}

/**
 * Throws if something is missing or altered. Without TLS browsers compute no hashes; phones decide nothing there.
 * @param {any} bundle
 */
async function check(bundle) {
  if (!globalThis.crypto?.subtle) return;
  let lines;
  try {
    lines = canonical(bundle);
  } catch {
    throw new Damaged('the bundle lacks a part');
  }
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(lines));
  const hex = Array.from(new Uint8Array(hash), byte => byte.toString(16).padStart(2, '0')).join('');
  if (hex !== bundle.checksum) throw new Damaged('the checksum is wrong');
}

/**
 * The lines that the checksum is made of (crates/wire/src/checkin/bundle.rs).
 * @param {any} bundle
 */
function canonical(bundle) {
  const lines = ['stampede bundle 1', bundle.target, bundle.seq, bundle.since ?? '', bundle.full ? 'full' : 'changes', bundle.capacity];
  for (const key of bundle.keys) lines.push(`key ${key.kid} ${key.publicKey} ${key.revoked ? 'revoked' : 'valid'}`);
  for (const list of bundle.lists) {
    const times = `${list.opensAt ?? ''} ${list.closesAt ?? ''}`;
    lines.push(`list ${list.id} ${times} ${list.entries} ${list.reentry} ${list.members ?? 'all'}`);
  }
  lines.push(`voided ${bundle.voided}`, `generations ${bundle.generations}`);
  for (const [list, packed] of Object.entries(bundle.admitted)) lines.push(`admitted ${list} ${packed}`);
  for (const [list, packed] of Object.entries(bundle.readmitted)) lines.push(`readmitted ${list} ${packed}`);
  if (bundle.blocked) lines.push(`blocked ${bundle.blocked}`);
  return lines.join('\n') + '\n';
}

/** Bytes of base64, in either alphabet. @param {string} text */
function bytesOf(text) {
  const plain = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(plain, character => character.charCodeAt(0));
}

/** Numbers of seven bits a byte, the least first; the highest bit says that more follow. @param {string} text */
function varints(text) {
  const numbers = [];
  let number = 0;
  let factor = 1;
  for (const byte of bytesOf(text)) {
    number += (byte & 127) * factor;
    factor *= 128;
    if (byte < 128) {
      numbers.push(number);
      number = 0;
      factor = 1;
    }
  }
  return numbers;
}

/** Numbers of tickets, each packed as its difference to the one before. @param {string} text */
function serials(text) {
  let last = 0;
  return varints(text).map(difference => (last += difference));
}

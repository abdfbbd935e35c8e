// The text of a ticket's code: 93 bytes in base32, signed by the event's key. The rules are those of
// crates/model/src/token.rs: one spelling only, and nothing is believed before the signature was checked.

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const LENGTH = 93;
const CLAIMS = 29;
const TEXT = Math.ceil((LENGTH * 8) / 5);
/** Signed before the claims. */
const DOMAIN = new TextEncoder().encode('stampede ticket token v1\0\0');

/**
 * A token that has the right shape.
 * @typedef {{version: number, event: string, key: number, serial: number, generation: number, bytes: Uint8Array}} Token
 */

/** @param {string} text */
export const looksLikeToken = text => text.length === TEXT && /^[A-Z2-7]+$/.test(text);

/** @param {string} text */
export const looksLikeTicketId = text => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);

/**
 * Reads a token; null if it is none.
 * @param {string} text
 * @returns {Token | null}
 */
export function readToken(text) {
  if (!looksLikeToken(text)) return null;
  const bytes = new Uint8Array(LENGTH);
  let buffer = 0;
  let bits = 0;
  let written = 0;
  for (const character of text) {
    buffer = ((buffer & 0xfff) << 5) | ALPHABET.indexOf(character);
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      bytes[written++] = buffer >> bits;
    }
  }
  // Bits that belong to no byte would give a token a second spelling.
  if ((buffer & ((1 << bits) - 1)) !== 0) return null;
  const view = new DataView(bytes.buffer);
  const hex = Array.from(bytes.subarray(1, 17), byte => byte.toString(16).padStart(2, '0')).join('');
  return {
    version: bytes[0],
    event: hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5'),
    key: view.getUint32(17),
    serial: view.getUint32(21),
    generation: view.getUint32(25),
    bytes,
  };
}

/**
 * Whether this key signed the token. Throws if the browser has no Ed25519.
 * @param {Token} token
 * @param {Uint8Array} publicKey 32 bytes
 */
export async function isSignedBy(token, publicKey) {
  const key = await crypto.subtle.importKey('raw', /** @type {BufferSource} */ (publicKey), 'Ed25519', false, ['verify']);
  const message = new Uint8Array(DOMAIN.length + CLAIMS);
  message.set(DOMAIN);
  message.set(token.bytes.subarray(0, CLAIMS), DOMAIN.length);
  return crypto.subtle.verify('Ed25519', key, /** @type {BufferSource} */ (token.bytes.subarray(CLAIMS)), message);
}

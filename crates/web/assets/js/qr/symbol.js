// The inside of a QR code of version 6: 41 × 41 modules, the only one that Stampede prints.
//
// Modules → format (error correction level, mask) → code words → corrected data → text.

import { correct } from './reed-solomon.js';

/** Modules along one side. */
export const SIZE = 41;
/** Bytes of data and checks together. */
const CODE_WORDS = 172;

/** Blocks, and data and check bytes of each, by the two bits of the format that tell the level: M, L, H, Q. */
const LEVELS = [
  { blocks: 4, data: 27, checks: 16 },
  { blocks: 2, data: 68, checks: 18 },
  { blocks: 4, data: 15, checks: 28 },
  { blocks: 4, data: 19, checks: 24 },
];

/** Which modules a mask inverts. @type {((x: number, y: number) => boolean)[]} */
const MASKS = [
  (x, y) => (x + y) % 2 === 0,
  (_, y) => y % 2 === 0,
  x => x % 3 === 0,
  (x, y) => (x + y) % 3 === 0,
  (x, y) => ((y >> 1) + Math.floor(x / 3)) % 2 === 0,
  (x, y) => ((x * y) % 2) + ((x * y) % 3) === 0,
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2 === 0,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2 === 0,
];

/** The 32 possible formats as they are drawn: 5 bits, 10 check bits, a fixed mask. */
const FORMATS = Array.from({ length: 32 }, (_, format) => {
  let rest = format;
  for (let i = 0; i < 10; i++) rest = (rest << 1) ^ ((rest >> 9) * 0x537);
  return ((format << 10) | rest) ^ 0x5412;
});

/** The two places where the format is drawn, most significant bit first. @type {[number, number][][]} */
const FORMAT_PLACES = [
  [[0, 8], [1, 8], [2, 8], [3, 8], [4, 8], [5, 8], [7, 8], [8, 8], [8, 7], [8, 5], [8, 4], [8, 3], [8, 2], [8, 1], [8, 0]],
  [
    [8, SIZE - 1], [8, SIZE - 2], [8, SIZE - 3], [8, SIZE - 4], [8, SIZE - 5], [8, SIZE - 6], [8, SIZE - 7],
    [SIZE - 8, 8], [SIZE - 7, 8], [SIZE - 6, 8], [SIZE - 5, 8], [SIZE - 4, 8], [SIZE - 3, 8], [SIZE - 2, 8], [SIZE - 1, 8],
  ],
];

/** Places of the data's modules, in the order in which the bits are laid. */
const DATA_PLACES = dataPlaces();

/**
 * The text of a code, or null if it cannot be read.
 * @param {Uint8Array} modules SIZE × SIZE, 1 is dark
 */
export function textOf(modules) {
  const format = formatOf(modules);
  if (format === null) return null;
  const inverted = MASKS[format & 7];
  const words = new Uint8Array(CODE_WORDS);
  for (let bit = 0; bit < CODE_WORDS * 8; bit++) {
    const place = DATA_PLACES[bit];
    const x = place % SIZE;
    const y = (place - x) / SIZE;
    const dark = modules[place] ^ (inverted(x, y) ? 1 : 0);
    words[bit >> 3] |= dark << (7 - (bit & 7));
  }
  const data = dataOf(words, LEVELS[format >> 3]);
  return data && decodeSegments(data);
}

/**
 * The format that differs least from what is drawn; null if every one differs in more than three bits.
 * @param {Uint8Array} modules
 */
function formatOf(modules) {
  let best = { distance: 4, format: -1 };
  for (const places of FORMAT_PLACES) {
    const drawn = places.reduce((bits, [x, y]) => (bits << 1) | modules[y * SIZE + x], 0);
    FORMATS.forEach((pattern, format) => {
      let distance = 0;
      for (let rest = pattern ^ drawn; rest; rest &= rest - 1) distance++;
      if (distance < best.distance) best = { distance, format };
    });
  }
  return best.format < 0 ? null : best.format;
}

/** The bits run in columns of two, from the right, upwards and downwards in turn, around everything that is not data. */
function dataPlaces() {
  const places = [];
  let upwards = true;
  for (let right = SIZE - 1; right > 0; right -= 2) {
    if (right === 6) right--;
    for (let i = 0; i < SIZE; i++) {
      const y = upwards ? SIZE - 1 - i : i;
      for (const x of [right, right - 1]) {
        if (isData(x, y)) places.push(y * SIZE + x);
      }
    }
    upwards = !upwards;
  }
  return places;
}

/** Not a finder with its format, a timing line, or the small square ("alignment pattern") at 34, 34.
 * @param {number} x @param {number} y */
function isData(x, y) {
  const finder = (x < 9 && y < 9) || (x >= SIZE - 8 && y < 9) || (x < 9 && y >= SIZE - 8);
  const timing = x === 6 || y === 6;
  const alignment = Math.abs(x - 34) <= 2 && Math.abs(y - 34) <= 2;
  return !finder && !timing && !alignment;
}

/**
 * Takes the interleaved blocks apart and corrects each.
 * @param {Uint8Array} words
 * @param {{blocks: number, data: number, checks: number}} level
 */
function dataOf(words, { blocks, data, checks }) {
  const result = new Uint8Array(blocks * data);
  for (let block = 0; block < blocks; block++) {
    const word = Uint8Array.from({ length: data + checks }, (_, i) => words[i * blocks + block]);
    if (!correct(word, checks)) return null;
    result.set(word.subarray(0, data), block * data);
  }
  return result;
}

const ALPHANUMERIC = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:';

/**
 * Reads the segments of a code: digits, alphanumeric characters, bytes. Null for anything else.
 * @param {Uint8Array} data
 */
function decodeSegments(data) {
  let at = 0;
  /** @param {number} count */
  const bits = count => {
    let value = 0;
    for (; count > 0; count--, at++) value = (value << 1) | ((data[at >> 3] >> (7 - (at & 7))) & 1);
    return value;
  };
  let text = '';
  while (at + 4 <= data.length * 8) {
    const mode = bits(4);
    if (mode === 0) break;
    if (mode === 1) {
      let count = bits(10);
      for (; count >= 3; count -= 3) text += String(bits(10)).padStart(3, '0');
      if (count > 0) text += String(bits(count === 2 ? 7 : 4)).padStart(count, '0');
    } else if (mode === 2) {
      let count = bits(9);
      for (; count >= 2; count -= 2) {
        const pair = bits(11);
        text += (ALPHANUMERIC[Math.floor(pair / 45)] ?? '?') + ALPHANUMERIC[pair % 45];
      }
      if (count > 0) text += ALPHANUMERIC[bits(6)] ?? '?';
    } else if (mode === 4) {
      for (let count = bits(8); count > 0; count--) text += String.fromCharCode(bits(8));
    } else {
      return null;
    }
    if (at > data.length * 8) return null;
  }
  return text;
}

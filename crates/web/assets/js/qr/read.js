// Reads QR codes of version 6 from a grey picture. Codes of other sizes are noticed, not read: they are not ours.
//
//   picture ─▶ dark points ─▶ finder patterns ─▶ three that form a corner ─▶ alignment pattern ─▶ projection ─▶ modules ─▶ text
//
// Pure functions without a browser: the worker, the photo and the tests call `read`.

import { darkPoints, sumsOf } from './picture.js';
import { findFinders } from './finders.js';
import { projection } from './perspective.js';
import { SIZE, textOf } from './symbol.js';

/** @typedef {import('./picture.js').Picture} Picture */
/** @typedef {import('./picture.js').Bits} Bits */
/** @typedef {import('./finders.js').Finder} Finder */
/** @typedef {import('./perspective.js').Point} Point */

/**
 * Three finders: `corner` between `right` (along the top) and `below`; `cost` is how far they are from a code of our size,
 * `spread` how much larger the largest is than the smallest.
 * @typedef {{corner: Finder, right: Finder, below: Finder, cost: number, spread: number}} Triple
 */

/**
 * What is in a picture: the text of a code, or the size of a code that is none of ours, or neither.
 * @typedef {{text: string | null, foreign: number | null}} Reading
 */

/** Modules between the middles of two finders. */
const SPAN = SIZE - 7;
/** Triples that are tried, the likeliest first. */
const MOST_TRIPLES = 5;
/** Triples whose timing lines are counted; that is quick. */
const MOST_FOREIGN = 20;
/** How much longer than the others a module of a timing line may look, in a code that is tilted … */
const LONGEST_MODULE = 1.5;
/** … and by the points of the picture. */
const ROUNDING = 0.9;
/** How far from its expected place the alignment pattern may be, in modules. */
const SEARCH = 6;

/**
 * @param {Picture} picture
 * @returns {Reading}
 */
export function read(picture) {
  const sums = sumsOf(picture);
  const side = Math.min(picture.width, picture.height);
  let foreign = null;
  // A wide neighbourhood suits large codes and broad shadows, a narrow one small and blurred codes.
  for (const radius of [Math.max(8, side >> 4), Math.max(5, side >> 6)]) {
    const bits = darkPoints(picture, sums, radius);
    const triples = triplesOf(findFinders(bits));
    for (const triple of triples.slice(0, MOST_TRIPLES)) {
      const text = readTriple(picture, bits, triple);
      if (text !== null) return { text, foreign: null };
    }
    foreign ??= foreignSize(bits, triples);
  }
  return { text: null, foreign };
}

/**
 * All ways to choose three finders that may be those of one code.
 * @param {Finder[]} finders
 */
function triplesOf(finders) {
  /** @type {Triple[]} */
  const triples = [];
  for (let i = 0; i < finders.length; i++) {
    for (let j = i + 1; j < finders.length; j++) {
      for (let k = j + 1; k < finders.length; k++) {
        const triple = arrange(finders[i], finders[j], finders[k]);
        if (triple) triples.push(triple);
      }
    }
  }
  return triples.sort((a, b) => a.cost - b.cost);
}

/** @param {Finder} a @param {Finder} b */
const distance = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);

/**
 * Puts three finders in order; null if they cannot belong together.
 * @param {Finder} a
 * @param {Finder} b
 * @param {Finder} c
 * @returns {Triple | null}
 */
function arrange(a, b, c) {
  const modules = [a.module, b.module, c.module];
  const spread = Math.max(...modules) / Math.min(...modules);
  if (spread > 2) return null;
  // The corner is opposite the longest side.
  let [corner, right, below] = [a, b, c];
  if (distance(a, c) > distance(b, c) && distance(a, c) > distance(a, b)) [corner, right, below] = [b, a, c];
  else if (distance(a, b) > distance(b, c) && distance(a, b) > distance(a, c)) [corner, right, below] = [c, b, a];
  const turn = (right.x - corner.x) * (below.y - corner.y) - (right.y - corner.y) * (below.x - corner.x);
  if (turn < 0) [right, below] = [below, right];
  const top = distance(corner, right);
  const left = distance(corner, below);
  const skew = Math.abs(distance(right, below) / Math.hypot(top, left) - 1);
  if (Math.max(top, left) > Math.min(top, left) * 2 || skew > 0.3) return null;
  const mean = (modules[0] + modules[1] + modules[2]) / 3;
  const wrongSpan = Math.abs((top + left) / 2 / mean - SPAN) / SPAN;
  return { corner, right, below, cost: skew + wrongSpan, spread };
}

/**
 * @param {Picture} picture
 * @param {Bits} bits
 * @param {Triple} triple
 */
function readTriple(picture, bits, { corner, right, below }) {
  /** From modules, counted from the middle of the corner's finder, to the picture, as if it were not tilted.
   * @param {number} u @param {number} v @returns {Point} */
  const flat = (u, v) => [
    corner.x + ((right.x - corner.x) * u + (below.x - corner.x) * v) / SPAN,
    corner.y + ((right.y - corner.y) * u + (below.y - corner.y) * v) / SPAN,
  ];
  /** @type {Point[]} */
  const inCode = [[3.5, 3.5], [SIZE - 3.5, 3.5], [3.5, SIZE - 3.5], [34.5, 34.5]];
  for (const fourth of alignmentPlaces(bits, flat)) {
    const place = projection(inCode, [[corner.x, corner.y], [right.x, right.y], [below.x, below.y], fourth]);
    if (!place) continue;
    for (const sample of [sampleBits, sampleGrey]) {
      const modules = sample(picture, bits, place);
      const text = modules && textOf(modules);
      if (text !== null) return text;
    }
  }
  return null;
}

/**
 * Where the small square near the fourth corner may be, the likeliest first; at last where it is in a flat picture.
 * @param {Bits} bits
 * @param {(u: number, v: number) => Point} flat
 */
function alignmentPlaces(bits, flat) {
  const expected = 31;
  /** @type {{score: number, u: number, v: number}[]} */
  const places = [];
  for (let dv = -SEARCH; dv <= SEARCH; dv += 0.5) {
    for (let du = -SEARCH; du <= SEARCH; du += 0.5) {
      let score = -(Math.abs(du) + Math.abs(dv)) * 0.12;
      for (let y = -2; y <= 2; y++) {
        for (let x = -2; x <= 2; x++) {
          const [px, py] = flat(expected + du + x, expected + dv + y);
          const ring = Math.max(Math.abs(x), Math.abs(y)) === 1;
          if (darkAt(bits, px, py) === (ring ? 0 : 1)) score++;
        }
      }
      if (score > 17) places.push({ score, u: expected + du, v: expected + dv });
    }
  }
  places.sort((a, b) => b.score - a.score);
  /** @type {{u: number, v: number}[]} */
  const chosen = [];
  for (const { u, v } of places) {
    if (chosen.length === 4) break;
    if (chosen.every(other => Math.abs(other.u - u) + Math.abs(other.v - v) > 0.9)) chosen.push({ u, v });
  }
  chosen.push({ u: expected, v: expected });
  return chosen.map(({ u, v }) => flat(u, v));
}

/** 1 for a dark point, 0 for a light one, -1 outside. @param {Bits} bits @param {number} x @param {number} y */
function darkAt({ dark, width, height }, x, y) {
  return x < 0 || y < 0 || x >= width || y >= height ? -1 : dark[Math.floor(y) * width + Math.floor(x)];
}

/** Places within a module that are asked; most of them decide. @type {Point[]} */
const PROBES = [[0.5, 0.5], [0.32, 0.5], [0.68, 0.5], [0.5, 0.32], [0.5, 0.68]];

/**
 * Each module by a vote of five dark or light points. Good for sharp pictures.
 * @param {Picture} _picture
 * @param {Bits} bits
 * @param {(x: number, y: number) => Point} place
 */
function sampleBits(_picture, bits, place) {
  const modules = new Uint8Array(SIZE * SIZE);
  for (let y = 0; y < SIZE; y++) {
    for (let x = 0; x < SIZE; x++) {
      let votes = 0;
      for (const [dx, dy] of PROBES) {
        const [px, py] = place(x + dx, y + dy);
        const dark = darkAt(bits, px, py);
        if (dark < 0) return null;
        votes += dark;
      }
      modules[y * SIZE + x] = votes > 2 ? 1 : 0;
    }
  }
  return modules;
}

/**
 * Each module by its middle's grey against the mean of the 7 × 7 modules around it. Good for small and blurred codes,
 * where a light module between dark ones is still grey.
 * @param {Picture} picture
 * @param {Bits} _bits
 * @param {(x: number, y: number) => Point} place
 */
function sampleGrey({ grey, width, height }, _bits, place) {
  const middles = new Float32Array(SIZE * SIZE);
  for (let y = 0; y < SIZE; y++) {
    for (let x = 0; x < SIZE; x++) {
      const [px, py] = place(x + 0.5, y + 0.5);
      // Between four points, weighted by distance; a point's middle is half a point from its corner.
      const left = Math.floor(px - 0.5);
      const top = Math.floor(py - 0.5);
      if (left < 0 || top < 0 || left + 1 >= width || top + 1 >= height) return null;
      const fx = px - 0.5 - left;
      const fy = py - 0.5 - top;
      const at = top * width + left;
      const upper = grey[at] * (1 - fx) + grey[at + 1] * fx;
      const lower = grey[at + width] * (1 - fx) + grey[at + width + 1] * fx;
      middles[y * SIZE + x] = upper * (1 - fy) + lower * fy;
    }
  }
  const modules = new Uint8Array(SIZE * SIZE);
  for (let y = 0; y < SIZE; y++) {
    for (let x = 0; x < SIZE; x++) {
      let sum = 0;
      let count = 0;
      for (let v = Math.max(0, y - 3); v <= Math.min(SIZE - 1, y + 3); v++) {
        for (let u = Math.max(0, x - 3); u <= Math.min(SIZE - 1, x + 3); u++, count++) sum += middles[v * SIZE + u];
      }
      modules[y * SIZE + x] = middles[y * SIZE + x] * count < sum ? 1 : 0;
    }
  }
  return modules;
}

/**
 * Modules along one side of a code that is not of version 6, by counting the dark and light modules of its two timing
 * lines; null if they cannot be counted, or do not agree, or the code is of our size.
 * @param {Bits} bits
 * @param {Triple[]} triples
 */
function foreignSize(bits, triples) {
  // The finders of one code are alike; what only looks like a finder is of any size.
  const alike = triples.toSorted((a, b) => a.spread - b.spread).slice(0, MOST_FOREIGN);
  for (const { corner, right, below } of alike) {
    const size = sizeAlong(bits, corner, right, below);
    if (size !== sizeAlong(bits, corner, below, right) || size < 21 || size > 177 || (size - 17) % 4 !== 0) continue;
    // A turned finder looks up to 1.4 times as wide as it is.
    const stretch = (corner.module * (size - 7)) / distance(corner, right);
    if (stretch > 0.7 && stretch < 1.7) return size === SIZE ? null : size;
  }
  return null;
}

/**
 * The timing line runs from finder to finder, three modules beside the line through their middles.
 * @param {Bits} bits
 * @param {Finder} from
 * @param {Finder} to
 * @param {Finder} beside
 */
function sizeAlong(bits, from, to, beside) {
  const sideways = distance(from, beside);
  const along = distance(from, to);
  /** @param {Finder} finder @returns {Point} */
  const edge = finder => {
    const forward = finder === from ? 3 : -3;
    return [
      finder.x + (((beside.x - from.x) / sideways) * 3 + ((to.x - from.x) / along) * forward) * finder.module,
      finder.y + (((beside.y - from.y) / sideways) * 3 + ((to.y - from.y) / along) * forward) * finder.module,
    ];
  };
  const [x0, y0] = edge(from);
  const [x1, y1] = edge(to);
  const steps = Math.ceil(Math.hypot(x1 - x0, y1 - y0));
  let changes = 0;
  let changedAt = 0;
  let longest = 0;
  let last = darkAt(bits, x0, y0);
  for (let step = 1; step <= steps; step++) {
    const next = darkAt(bits, x0 + ((x1 - x0) * step) / steps, y0 + ((y1 - y0) * step) / steps);
    if (next < 0) return 0;
    if (next !== last) {
      longest = Math.max(longest, step - changedAt);
      changedAt = step;
      changes++;
    }
    last = next;
  }
  // The modules of a timing line are equally long. In noise and print, dark and light have any length.
  if (longest > LONGEST_MODULE * (steps / changes) + ROUNDING) return 0;
  // From the last module of one finder to the first of the other: light, dark, light … light, dark.
  return changes + 13;
}

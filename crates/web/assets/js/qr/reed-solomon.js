// Error correction of QR codes: Reed–Solomon over the field of 256 elements with the polynomial 0x11d.
//
// The syndromes of a received word are all zero if it is right. If not, Berlekamp and Massey's algorithm finds the
// polynomial whose roots are the places of the errors, and Forney's formula says what each error is.

const EXP = new Uint8Array(512);
const LOG = new Uint8Array(256);
for (let i = 0, x = 1; i < 255; i++) {
  EXP[i] = EXP[i + 255] = x;
  LOG[x] = i;
  x <<= 1;
  if (x & 256) x ^= 0x11d;
}

/** @param {number} a @param {number} b */
const multiply = (a, b) => (a && b ? EXP[LOG[a] + LOG[b]] : 0);

/** @param {number} a */
const inverse = a => EXP[255 - LOG[a]];

/**
 * Value of a polynomial, its lowest coefficient first.
 * @param {ArrayLike<number>} polynomial
 * @param {number} x
 */
function evaluate(polynomial, x) {
  let value = 0;
  for (let i = polynomial.length - 1; i >= 0; i--) value = multiply(value, x) ^ polynomial[i];
  return value;
}

/**
 * Corrects a word in place. False if it has more errors than `checks / 2`: its bytes mean nothing then.
 * @param {Uint8Array} word data, then the check bytes
 * @param {number} checks how many check bytes it has
 */
export function correct(word, checks) {
  // The first byte of a word is its highest coefficient.
  const received = Uint8Array.from(word).reverse();
  const syndromes = Array.from({ length: checks }, (_, i) => evaluate(received, EXP[i]));
  if (syndromes.every(syndrome => syndrome === 0)) return true;
  const locator = errorLocator(syndromes);
  const errors = locator.length - 1;
  if (errors * 2 > checks) return false;
  const places = [];
  for (let place = 0; place < word.length; place++) {
    if (evaluate(locator, EXP[255 - place]) === 0) places.push(place);
  }
  if (places.length !== errors) return false;
  // Ω = S · Λ mod x^checks, and Λ' (in such a field only odd powers survive).
  const evaluator = new Uint8Array(checks);
  for (let i = 0; i < checks; i++) {
    for (let j = 0; j <= Math.min(i, errors); j++) evaluator[i] ^= multiply(syndromes[i - j], locator[j]);
  }
  const derivative = locator.slice(1).map((value, i) => (i % 2 === 0 ? value : 0));
  for (const place of places) {
    const root = EXP[255 - place];
    const below = evaluate(derivative, root);
    if (below === 0) return false;
    const error = multiply(multiply(evaluate(evaluator, root), inverse(below)), EXP[place]);
    word[word.length - 1 - place] ^= error;
  }
  return true;
}

/**
 * The shortest polynomial Λ, with Λ(0) = 1, that the syndromes obey (Berlekamp and Massey).
 * @param {number[]} syndromes
 */
function errorLocator(syndromes) {
  let locator = [1];
  let before = [1];
  let length = 0;
  let shift = 1;
  let lastGap = 1;
  for (let i = 0; i < syndromes.length; i++) {
    let gap = syndromes[i];
    for (let j = 1; j <= length; j++) gap ^= multiply(locator[j] ?? 0, syndromes[i - j]);
    if (gap === 0) {
      shift++;
      continue;
    }
    const factor = multiply(gap, inverse(lastGap));
    const next = locator.slice();
    for (let j = 0; j < before.length; j++) {
      next[j + shift] = (next[j + shift] ?? 0) ^ multiply(factor, before[j]);
    }
    for (let j = 0; j < next.length; j++) next[j] ??= 0;
    if (2 * length <= i) {
      length = i + 1 - length;
      before = locator;
      lastGap = gap;
      shift = 1;
    } else {
      shift++;
    }
    locator = next;
  }
  while (locator.length > 1 && locator[locator.length - 1] === 0) locator.pop();
  return locator;
}

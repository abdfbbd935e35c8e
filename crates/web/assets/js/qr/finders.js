// The three large squares in the corners of a QR code ("finder patterns").
//
//   ███████    Any straight line through the middle crosses dark, light, dark, light, dark
//   █     █    in the ratio 1 : 1 : 3 : 1 : 1, however the code is turned.
//   █ ███ █
//   █ ███ █    Each row of the picture is searched for that ratio; a find is confirmed by the
//   █ ███ █    column through it and by the row through the middle of that column.
//   █     █
//   ███████

/** @typedef {import('./picture.js').Bits} Bits */

/**
 * The middle of a finder pattern: `module` is the width of one of its modules, `seen` how many rows showed it.
 * @typedef {{x: number, y: number, module: number, seen: number}} Finder
 */

/** More finds than these are noise: a code has three. */
const MOST = 12;

/**
 * The finder patterns of a picture, the surest first.
 * @param {Bits} bits
 * @returns {Finder[]}
 */
export function findFinders(bits) {
  /** @type {Finder[]} */
  const found = [];
  const runs = [0, 0, 0, 0, 0];
  for (let y = 0; y < bits.height; y++) {
    runs.fill(0);
    let colour = 0;
    for (let x = 0; x <= bits.width; x++) {
      const next = x < bits.width ? bits.dark[y * bits.width + x] : 1 - colour;
      if (next === colour) {
        runs[4]++;
        continue;
      }
      if (colour === 1 && moduleOf(runs) > 0) {
        const middle = Math.round(x - runs[4] - runs[3] - runs[2] / 2);
        confirm(bits, found, middle, y, runs[2] * 2);
      }
      runs.shift();
      runs.push(1);
      colour = next;
    }
  }
  return found.sort((a, b) => b.seen - a.seen).slice(0, MOST);
}

/**
 * Width of a module if the five runs have the ratio of a finder pattern, else 0.
 * @param {number[]} runs
 */
function moduleOf(runs) {
  const total = runs[0] + runs[1] + runs[2] + runs[3] + runs[4];
  if (total < 7) return 0;
  const module = total / 7;
  const slack = module * 0.65;
  const fits =
    Math.abs(runs[0] - module) < slack &&
    Math.abs(runs[1] - module) < slack &&
    Math.abs(runs[2] - 3 * module) < 2.5 * slack &&
    Math.abs(runs[3] - module) < slack &&
    Math.abs(runs[4] - module) < slack;
  return fits ? module : 0;
}

/**
 * Looks at the column and the row through a find, and adds it to `found` if they agree.
 * @param {Bits} bits
 * @param {Finder[]} found
 * @param {number} x
 * @param {number} y
 * @param {number} longest no run but the middle one may be longer
 */
function confirm(bits, found, x, y, longest) {
  const column = cross(bits, x, y, 0, 1, longest);
  if (!column) return;
  const middleY = y + column.offset;
  const row = cross(bits, x, Math.round(middleY), 1, 0, longest);
  if (!row || Math.abs(row.module - column.module) > 0.5 * column.module) return;
  const middleX = x + row.offset;
  const module = (row.module + column.module) / 2;
  const known = found.find(other => Math.hypot(other.x - middleX, other.y - middleY) < module * 3);
  if (!known) {
    found.push({ x: middleX, y: middleY, module, seen: 1 });
    return;
  }
  const weight = 1 / (known.seen + 1);
  known.x += (middleX - known.x) * weight;
  known.y += (middleY - known.y) * weight;
  known.module += (module - known.module) * weight;
  known.seen++;
}

/**
 * Measures the five runs through a dark point in one direction and its opposite.
 * @param {Bits} bits
 * @param {number} x
 * @param {number} y
 * @param {number} dx
 * @param {number} dy
 * @param {number} longest
 * @returns {{module: number, offset: number} | null} `offset`: from the point to the pattern's middle
 */
function cross({ dark, width, height }, x, y, dx, dy, longest) {
  /** @param {number} step */
  const at = step => {
    const px = x + dx * step;
    const py = y + dy * step;
    return px < 0 || py < 0 || px >= width || py >= height ? -1 : dark[py * width + px];
  };
  const runs = [0, 0, 0, 0, 0];
  let step = 0;
  for (; at(step) === 1; step--) runs[2]++;
  for (; at(step) === 0 && runs[1] <= longest; step--) runs[1]++;
  for (; at(step) === 1 && runs[0] <= longest; step--) runs[0]++;
  step = 1;
  for (; at(step) === 1; step++) runs[2]++;
  const end = step;
  for (; at(step) === 0 && runs[3] <= longest; step++) runs[3]++;
  for (; at(step) === 1 && runs[4] <= longest; step++) runs[4]++;
  const module = moduleOf(runs);
  return module > 0 ? { module, offset: end - runs[2] / 2 - 0.5 } : null;
}

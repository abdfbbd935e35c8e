// From places in the code to places in the picture.
//
// A flat code in front of a camera is seen through a projection:
//   u = (a·x + b·y + c) / (g·x + h·y + 1)      v = (d·x + e·y + f) / (g·x + h·y + 1)
// Four points known in both give eight linear equations for the eight unknowns.

/** @typedef {[number, number]} Point */

/**
 * The projection that takes each point of `from` to the one of `to`; null if three of them lie on one line.
 * @param {Point[]} from
 * @param {Point[]} to
 * @returns {((x: number, y: number) => Point) | null}
 */
export function projection(from, to) {
  /** @type {number[][]} */
  const rows = [];
  for (let i = 0; i < 4; i++) {
    const [x, y] = from[i];
    const [u, v] = to[i];
    rows.push([x, y, 1, 0, 0, 0, -u * x, -u * y, u]);
    rows.push([0, 0, 0, x, y, 1, -v * x, -v * y, v]);
  }
  if (!eliminate(rows)) return null;
  const [a, b, c, d, e, f, g, h] = rows.map(row => row[8]);
  return (x, y) => {
    const depth = g * x + h * y + 1;
    return [(a * x + b * y + c) / depth, (d * x + e * y + f) / depth];
  };
}

/**
 * Gauss and Jordan: turns the left 8 × 8 part into the unit matrix; the ninth column is the answer then.
 * @param {number[][]} rows
 */
function eliminate(rows) {
  for (let column = 0; column < 8; column++) {
    let best = column;
    for (let row = column + 1; row < 8; row++) {
      if (Math.abs(rows[row][column]) > Math.abs(rows[best][column])) best = row;
    }
    [rows[column], rows[best]] = [rows[best], rows[column]];
    const pivot = rows[column][column];
    if (Math.abs(pivot) < 1e-12) return false;
    rows[column] = rows[column].map(value => value / pivot);
    for (let row = 0; row < 8; row++) {
      const factor = rows[row][column];
      if (row === column || factor === 0) continue;
      for (let i = column; i < 9; i++) rows[row][i] -= factor * rows[column][i];
    }
  }
  return true;
}

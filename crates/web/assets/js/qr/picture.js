// Grey pictures, and which of their points are dark.
//
// "Dark" is relative: a point is dark if it is darker than the mean of its neighbourhood. So shadows, weak light and
// a screen's glow do not matter. The means of all neighbourhoods come from one table of sums (an integral image).

/**
 * A grey picture: one byte a point, row by row, 0 is black.
 * @typedef {{grey: Uint8Array, width: number, height: number}} Picture
 */

/**
 * The points of a picture as dark (1) or light (0).
 * @typedef {{dark: Uint8Array, width: number, height: number}} Bits
 */

/** A point counts as dark below this share of its neighbourhood's mean. */
const DARKER_THAN = 0.93;

/**
 * Makes a grey picture of the colours that a canvas gives.
 * @param {Uint8ClampedArray} rgba
 * @param {number} width
 * @param {number} height
 * @returns {Picture}
 */
export function greyOf(rgba, width, height) {
  const grey = new Uint8Array(width * height);
  for (let i = 0, from = 0; i < grey.length; i++, from += 4) {
    grey[i] = (rgba[from] * 77 + rgba[from + 1] * 150 + rgba[from + 2] * 29) >> 8;
  }
  return { grey, width, height };
}

/**
 * Sums of all points above and to the left, one row and one column larger than the picture.
 * @param {Picture} picture
 */
export function sumsOf({ grey, width, height }) {
  const stride = width + 1;
  const sums = new Uint32Array(stride * (height + 1));
  for (let y = 0; y < height; y++) {
    let row = 0;
    for (let x = 0; x < width; x++) {
      row += grey[y * width + x];
      sums[(y + 1) * stride + x + 1] = sums[y * stride + x + 1] + row;
    }
  }
  return sums;
}

/**
 * Which points are darker than the square of `radius` around them.
 * @param {Picture} picture
 * @param {Uint32Array} sums what `sumsOf` gave for this picture
 * @param {number} radius
 * @returns {Bits}
 */
export function darkPoints({ grey, width, height }, sums, radius) {
  const stride = width + 1;
  const dark = new Uint8Array(width * height);
  for (let y = 0; y < height; y++) {
    const top = Math.max(0, y - radius) * stride;
    const bottom = Math.min(height, y + radius + 1) * stride;
    const rows = (bottom - top) / stride;
    for (let x = 0; x < width; x++) {
      const left = Math.max(0, x - radius);
      const right = Math.min(width, x + radius + 1);
      const sum = sums[bottom + right] - sums[top + right] - sums[bottom + left] + sums[top + left];
      if (grey[y * width + x] * rows * (right - left) < sum * DARKER_THAN) dark[y * width + x] = 1;
    }
  }
  return { dark, width, height };
}

// A photo from the camera or the album, read on the phone: for plain http, where browsers give no camera.

import { greyOf } from './qr/picture.js';
import { read } from './qr/read.js';

/** Sizes of the longer side that are tried: a code may fill the photo or be small in it. */
const SIZES = [960, 640, 1600, 420];

/**
 * The text of a code of ours; '' for a code of somebody else; null if none was found.
 * @param {Blob} file
 * @returns {Promise<string | null>}
 */
export async function readPhoto(file) {
  const photo = await createImageBitmap(file);
  const canvas = document.createElement('canvas');
  let foreign = false;
  for (const size of SIZES) {
    const scale = Math.min(1, size / Math.max(photo.width, photo.height));
    canvas.width = Math.round(photo.width * scale);
    canvas.height = Math.round(photo.height * scale);
    const context = canvas.getContext('2d', { willReadFrequently: true });
    if (!context) return null;
    context.drawImage(photo, 0, 0, canvas.width, canvas.height);
    const reading = read(greyOf(context.getImageData(0, 0, canvas.width, canvas.height).data, canvas.width, canvas.height));
    if (reading.text !== null) return reading.text;
    foreign ||= reading.foreign !== null;
  }
  return foreign ? '' : null;
}

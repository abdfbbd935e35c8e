// Reads codes beside the page, so that the picture never stops: grey frames in, readings out.

import { read } from './qr/read.js';

/** @param {MessageEvent<{grey: ArrayBuffer, width: number, height: number}>} event */
onmessage = ({ data }) => {
  postMessage(read({ grey: new Uint8Array(data.grey), width: data.width, height: data.height }));
};

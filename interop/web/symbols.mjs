// QR codes as pictures, drawn by a library that has nothing to do with our reader.

import { writeFileSync } from 'node:fs';
import QRCode from 'qrcode';

/** A code as rows of grey bytes; `scale` points a module, four modules of quiet zone. */
export function drawn(text, { version = 6, level = 'M', scale = 8 } = {}) {
  const { modules } = QRCode.create(text, { version, errorCorrectionLevel: level });
  const width = (modules.size + 8) * scale;
  const grey = new Uint8Array(width * width).fill(255);
  for (let y = 0; y < width; y++) {
    for (let x = 0; x < width; x++) {
      const [column, row] = [Math.floor(x / scale) - 4, Math.floor(y / scale) - 4];
      const inside = column >= 0 && row >= 0 && column < modules.size && row < modules.size;
      if (inside && modules.get(row, column)) grey[y * width + x] = 0;
    }
  }
  return { grey, width, height: width };
}

/** Writes a picture as PGM, which ffmpeg reads. */
export function writePgm(path, { grey, width, height }) {
  writeFileSync(path, Buffer.concat([Buffer.from(`P5\n${width} ${height}\n255\n`), grey]));
}

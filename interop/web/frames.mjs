// Frames as a phone at the door sees them, made with ffmpeg: the code turned, tilted, small, blurred, dark.

import { execFileSync } from 'node:child_process';

/** The square that the page gives to the reader. */
export const SIDE = 480;
/** Frames of each kind. */
export const EACH = 40;

const ground = `color=c=0x8a8f98:s=${SIDE}x${SIDE}:r=10:d=${EACH / 10}`;
/** The code on a grey ground; `shape` changes the code (it has an alpha channel), `after` the whole frame. */
const scene = (size, shape, after) =>
  `[1:v]scale=${size}:${size}:flags=area,format=rgba${shape}[code];` +
  `[0:v][code]overlay=x='(W-w)/2+18*sin(n/5)':y='(H-h)/2+14*cos(n/7)':shortest=1,${after},format=gray`;

const turn = (angle, room = 1.42) => `,rotate='${angle}':c=none:ow='iw*${room}':oh='ow'`;
// The corners of a code move in and out; `perspective` needs room around the code to move into.
const tilt = (amount) =>
  ",pad='iw*1.3':'ih*1.3':(ow-iw)/2:(oh-ih)/2:color=black@0,perspective=eval=frame:sense=source:" +
  `x0='-W*${amount}*(1+sin(in/6))':y0='-H*${amount}*(1+cos(in/8))':x1='W+W*${amount}*(1+cos(in/9))':y1='-H*${amount}*(1-cos(in/8))':` +
  `x2='-W*${amount}*(1-sin(in/6))':y2='H+H*${amount}*(1+sin(in/7))':x3='W+W*${amount}*(1-cos(in/9))':y3='H+H*${amount}*(1-sin(in/5))'`;
const noise = (strength) => `noise=alls=${strength}:allf=t`;

/** Name of each kind, and how ffmpeg makes it. */
export const kinds = {
  turned: scene(300, turn(`n*2*PI/${EACH}+0.05`), noise(6)),
  tilted: scene(330, tilt(0.1), noise(6)),
  small: scene(150, turn('0.3*sin(n/4)'), `gblur=sigma=0.4,${noise(8)}`),
  blurred: scene(280, turn('0.4*sin(n/5)'), `gblur=sigma=1.6,${noise(6)}`),
  dark: scene(300, turn('0.25*cos(n/6)'), `gblur=sigma=0.8,eq=brightness=-0.32:contrast=0.35,${noise(10)}`),
};

/** The frames of a kind: grey pictures of SIDE × SIDE. */
export function frames(pgm, kind) {
  const bytes = execFileSync('ffmpeg', [
    '-v', 'error', '-f', 'lavfi', '-i', ground, '-loop', '1', '-framerate', '10', '-t', String(EACH / 10), '-i', pgm,
    '-filter_complex', kinds[kind], '-frames:v', String(EACH), '-f', 'rawvideo', '-pix_fmt', 'gray', '-',
  ], { maxBuffer: 1 << 30 });
  const size = SIDE * SIDE;
  return Array.from({ length: bytes.length / size }, (_, i) => ({
    grey: new Uint8Array(bytes.subarray(i * size, (i + 1) * size)),
    width: SIDE,
    height: SIDE,
  }));
}

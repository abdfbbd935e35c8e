// Films for Chromium's fake camera: a code comes into view, leaves, and comes again; the film is played in a loop.

import { execFileSync } from 'node:child_process';

/**
 * Writes a film of `seconds`: the code of `pgm` moves a little, and is there in the spans of `shown` (seconds from, to).
 */
export function makeFilm(path, pgm, { seconds = 6, shown = [[0, 2]] } = {}) {
  const when = shown.map(([from, to]) => `between(t,${from},${to})`).join('+');
  execFileSync('ffmpeg', [
    '-v', 'error', '-y', '-f', 'lavfi', '-i', `color=c=0x8a8f98:s=640x480:r=15:d=${seconds}`,
    '-loop', '1', '-framerate', '15', '-t', String(seconds), '-i', pgm, '-filter_complex',
    "[1:v]scale=300:300:flags=area,format=rgba,rotate='0.15*sin(t)':c=none:ow=rotw(0.3):oh=roth(0.3)[code];" +
      `[0:v][code]overlay=x='(W-w)/2+20*sin(t*1.3)':y='(H-h)/2+12*cos(t)':enable='${when}',gblur=sigma=0.7,noise=alls=6:allf=t,format=yuv420p`,
    path,
  ]);
}

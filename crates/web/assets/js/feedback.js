// Three sounds and three vibrations that can be told apart without looking.

/** @typedef {'ok' | 'no' | 'warn'} Colour */

/** Tones: frequency, start and length in seconds. @type {Record<Colour, {wave: OscillatorType, tones: [number, number, number][]}>} */
const SOUNDS = {
  // Two rising, clear tones.
  ok: { wave: 'sine', tones: [[784, 0, 0.09], [1175, 0.1, 0.16]] },
  // Two low, harsh ones.
  no: { wave: 'sawtooth', tones: [[165, 0, 0.2], [131, 0.24, 0.34]] },
  // Three equal ones.
  warn: { wave: 'triangle', tones: [[587, 0, 0.08], [587, 0.14, 0.08], [587, 0.28, 0.08]] },
};
/** @type {Record<Colour, number[]>} */
const VIBRATIONS = { ok: [60], no: [180, 90, 180], warn: [60, 60, 60, 60, 60] };

/** @type {AudioContext | null} */
let audio = null;
let loud = true;

/** @param {boolean} on */
export function useSound(on) {
  loud = on;
}

/** Browsers make sounds only after somebody has touched the page. */
export function wakeSound() {
  audio ??= new AudioContext();
  if (audio.state === 'suspended') audio.resume().catch(() => {});
}

/** @param {Colour} colour */
export function signal(colour) {
  // Before the first touch browsers refuse to vibrate, with an error in the console.
  if (navigator.userActivation?.hasBeenActive ?? true) navigator.vibrate?.(VIBRATIONS[colour]);
  if (!loud || audio?.state !== 'running') return;
  const { wave, tones } = SOUNDS[colour];
  for (const [frequency, start, length] of tones) {
    const from = audio.currentTime + start;
    const tone = new OscillatorNode(audio, { type: wave, frequency });
    const volume = new GainNode(audio, { gain: 0 });
    volume.gain.setValueAtTime(0, from);
    volume.gain.linearRampToValueAtTime(0.6, from + 0.01);
    volume.gain.setValueAtTime(0.6, from + length - 0.02);
    volume.gain.linearRampToValueAtTime(0, from + length);
    tone.connect(volume).connect(audio.destination);
    tone.start(from);
    tone.stop(from + length);
  }
}

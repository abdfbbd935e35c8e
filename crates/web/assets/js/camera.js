// The camera: picture, torch, other camera, and a reader that gets every frame it is free for.

import { greyOf } from './qr/picture.js';
import { scriptAddress } from './trusted.js';

/** @typedef {import('./qr/read.js').Reading} Reading */

/** The middle square of the picture is read at this size. */
const SIDE = 480;
/** A foreign code must be seen in as many frames in a row: one frame may be a mistake. */
const FOREIGN_FRAMES = 3;

/** Why there is no picture; names of texts. @typedef {'cameraPlain' | 'cameraDenied' | 'cameraMissing'} NoCamera */

/**
 * What reads a frame: the browser's own detector where it has one, else our reader in a worker.
 * @typedef {(video: HTMLVideoElement) => Promise<Reading>} FrameReader
 */

export class Camera {
  /**
   * @param {HTMLVideoElement} video
   * @param {(text: string) => void} onText
   * @param {() => void} onForeign
   */
  constructor(video, onText, onForeign) {
    this.video = video;
    this.onText = onText;
    this.onForeign = onForeign;
    /** @type {MediaStream | null} */
    this.stream = null;
    /** @type {string | null} */
    this.deviceId = null;
    this.torch = false;
    /** @type {Promise<FrameReader> | null} */
    this.reader = null;
    this.foreignFrames = 0;
  }

  /**
   * Starts the picture; null, or why there is none.
   * @param {string | null} deviceId the camera that was used last
   * @returns {Promise<NoCamera | null>}
   */
  async start(deviceId = this.deviceId) {
    if (!isSecureContext) return 'cameraPlain';
    if (!navigator.mediaDevices) return 'cameraMissing';
    this.stop();
    const size = { width: { ideal: 1280 }, height: { ideal: 720 } };
    const back = { ...size, facingMode: { ideal: 'environment' } };
    try {
      try {
        this.stream = await open(deviceId ? { ...size, deviceId: { exact: deviceId } } : back);
      } catch (error) {
        // The remembered camera may be gone.
        if (!deviceId || (error instanceof DOMException && error.name === 'NotAllowedError')) throw error;
        this.stream = await open(back);
      }
      this.video.srcObject = this.stream;
      await this.video.play();
    } catch (error) {
      this.stop();
      return error instanceof DOMException && error.name === 'NotAllowedError' ? 'cameraDenied' : 'cameraMissing';
    }
    this.deviceId = this.track?.getSettings().deviceId ?? null;
    this.reader ??= frameReader();
    const stream = this.stream;
    this.reader.then(reader => this.readFrames(reader, stream));
    return null;
  }

  stop() {
    for (const track of this.stream?.getTracks() ?? []) track.stop();
    this.stream = null;
    this.torch = false;
  }

  get track() {
    return this.stream?.getVideoTracks()[0] ?? null;
  }

  get isRunning() {
    return this.track?.readyState === 'live';
  }

  get hasTorch() {
    return Boolean(Reflect.get(this.track?.getCapabilities?.() ?? {}, 'torch'));
  }

  async toggleTorch() {
    this.torch = !this.torch;
    const wanted = /** @type {any} */ ({ advanced: [{ torch: this.torch }] });
    await this.track?.applyConstraints(wanted).catch(() => (this.torch = false));
    return this.torch;
  }

  async cameras() {
    const devices = (await navigator.mediaDevices?.enumerateDevices()) ?? [];
    return devices.filter(device => device.kind === 'videoinput');
  }

  /** Goes on to the next camera. */
  async next() {
    const ids = (await this.cameras()).map(camera => camera.deviceId);
    const at = ids.indexOf(this.deviceId ?? '');
    return this.start(ids[(at + 1) % ids.length] ?? null);
  }

  /**
   * Reads frames until the stream is replaced.
   * @param {FrameReader} reader
   * @param {MediaStream} stream
   */
  async readFrames(reader, stream) {
    while (this.stream === stream) {
      await nextFrame(this.video);
      if (document.hidden || !this.video.videoWidth || this.stream !== stream) continue;
      const { text, foreign } = await reader(this.video);
      this.foreignFrames = foreign === null ? 0 : this.foreignFrames + 1;
      if (text !== null) this.onText(text);
      else if (this.foreignFrames >= FOREIGN_FRAMES) this.onForeign();
    }
  }
}

/** @param {MediaTrackConstraints} video */
const open = video => navigator.mediaDevices.getUserMedia({ video, audio: false });

/**
 * Resolves at the next frame; after a moment in any case, for a hidden page gets no frames.
 * @param {HTMLVideoElement} video
 */
const nextFrame = video =>
  new Promise(resolve => {
    const tells = 'requestVideoFrameCallback' in video;
    if (tells) video.requestVideoFrameCallback(resolve);
    setTimeout(resolve, tells ? 500 : 60);
  });

/** @returns {Promise<FrameReader>} */
async function frameReader() {
  const own = ownReader();
  /** @type {any} */
  const Detector = Reflect.get(globalThis, 'BarcodeDetector');
  const formats = (await Detector?.getSupportedFormats().catch(() => [])) ?? [];
  document.body.dataset.reader = formats.includes('qr_code') ? 'browser' : 'own';
  if (!formats.includes('qr_code')) return own;
  const detector = new Detector({ formats: ['qr_code'] });
  let broken = false;
  return async video => {
    if (broken) return own(video);
    try {
      const [code] = await detector.detect(video);
      return { text: code?.rawValue ?? null, foreign: null };
    } catch {
      broken = true;
      document.body.dataset.reader = 'own';
      return own(video);
    }
  };
}

/** Our reader, in a worker. @returns {FrameReader} */
function ownReader() {
  const address = new URL('./scan-worker.js', import.meta.url).href;
  const worker = new Worker(scriptAddress(address), { type: 'module' });
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = SIDE;
  const context = canvas.getContext('2d', { willReadFrequently: true });
  return async video => {
    if (!context) return { text: null, foreign: null };
    const side = Math.min(video.videoWidth, video.videoHeight);
    context.drawImage(video, (video.videoWidth - side) / 2, (video.videoHeight - side) / 2, side, side, 0, 0, SIDE, SIDE);
    const { grey } = greyOf(context.getImageData(0, 0, SIDE, SIDE).data, SIDE, SIDE);
    return new Promise(resolve => {
      worker.onmessage = event => resolve(event.data);
      worker.postMessage({ grey: grey.buffer, width: SIDE, height: SIDE }, [grey.buffer]);
    });
  };
}

// Parts of the gate page that need no page: the database that a browser closes, sounds and vibrations.

import assert from 'node:assert/strict';
import { test } from 'node:test';

const part = name => import(`${process.env.GATE_ASSETS}/js/${name}.js`);

/** A database of the browser, as far as it matters here. */
class Database {
  isOpen = true;

  /** What a browser does that needs the memory, or whose storage is cleared. */
  close({ tells }) {
    this.isOpen = false;
    if (tells) this.onclose();
  }

  transaction() {
    if (!this.isOpen) throw new DOMException('The database connection is closing.', 'InvalidStateError');
    return { objectStore: () => ({ get: key => answer(`value of ${key}`) }) };
  }
}

function answer(result) {
  const request = { result };
  queueMicrotask(() => request.onsuccess());
  return request;
}

test('a database that the browser has closed, or could not open, is opened again', async () => {
  const databases = [];
  let fails = true;
  globalThis.indexedDB = {
    open() {
      const request = { error: new DOMException('no room', 'UnknownError') };
      queueMicrotask(() => {
        if (fails) return request.onerror();
        request.result = new Database();
        databases.push(request.result);
        request.onsuccess();
      });
      return request;
    },
  };
  const { get } = await part('database');
  await assert.rejects(get('settings', 'key'), /no room/);
  fails = false;
  assert.equal(await get('settings', 'key'), 'value of key');
  assert.equal(databases.length, 1);
  for (const tells of [true, false]) {
    databases.at(-1).close({ tells });
    assert.equal(await get('settings', 'key'), 'value of key', `the browser ${tells ? 'tells it' : 'says nothing'}`);
  }
  assert.equal(databases.length, 3);
});

test('each colour has a sound and a vibration of its own, and sound can be switched off', async () => {
  const vibrations = [];
  const tones = [];
  const at = name => time => tones.at(-1)[name].push(time);
  Object.defineProperty(globalThis, 'navigator', {
    configurable: true,
    value: { userActivation: { hasBeenActive: true }, vibrate: pattern => vibrations.push(pattern) },
  });
  globalThis.AudioContext = class {
    state = 'suspended';
    currentTime = 5;
    destination = { name: 'the loudspeaker' };
    resume = async () => (this.state = 'running');
  };
  globalThis.OscillatorNode = class {
    constructor(_, { type, frequency }) {
      tones.push({ type, frequency, start: [], stop: [] });
    }
    connect = next => next;
    start = at('start');
    stop = at('stop');
  };
  globalThis.GainNode = class {
    gain = { setValueAtTime() {}, linearRampToValueAtTime() {} };
    connect = next => assert.equal(next.name, 'the loudspeaker');
  };
  const { signal, useSound, wakeSound } = await part('feedback');
  signal('ok');
  assert.deepEqual([vibrations.splice(0), tones], [[[60]], []], 'no sound before the first touch');
  wakeSound();
  const heard = colour => {
    signal(colour);
    return tones.splice(0).map(({ type, frequency, start: [from], stop: [to] }) => [type, frequency, from >= 5 && to > from]);
  };
  const sounds = ['ok', 'no', 'warn'].map(heard);
  assert.deepEqual(sounds[0], [['sine', 784, true], ['sine', 1175, true]]);
  assert.deepEqual(sounds[1], [['sawtooth', 165, true], ['sawtooth', 131, true]]);
  assert.deepEqual(sounds[2], Array(3).fill(['triangle', 587, true]));
  assert.deepEqual(vibrations.splice(0), [[60], [180, 90, 180], [60, 60, 60, 60, 60]]);
  useSound(false);
  assert.deepEqual(heard('no'), []);
  assert.deepEqual(vibrations, [[180, 90, 180]], 'it vibrates all the same');
});

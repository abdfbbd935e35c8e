// The gate page: from the key to the scanner, and what is always on the screen.

import { connection } from './api.js';
import { Camera } from './camera.js';
import { all } from './database.js';
import { device, loadDevice, refreshMe, remember } from './device.js';
import { isNews } from './decide.js';
import { resume, scan, seenByCamera } from './door.js';
import { useSound, wakeSound } from './feedback.js';
import { listenToHandScanner } from './hand-scanner.js';
import { setUpMenu } from './menu.js';
import { admissionsOn, outbox, tidy, undoable, unsentCount } from './outbox.js';
import { $ } from './page.js';
import { readPhoto } from './photo.js';
import { askForKey, askForPlace, showScreen } from './setup.js';
import { loadTickets, sync, syncNow } from './sync.js';
import { amount, t, useLanguage } from './texts.js';
import { scriptAddress } from './trusted.js';
import { show, showReady } from './verdict.js';

/** A clock that is further off is told. */
const CLOCK_MS = 60_000;

const camera = new Camera($('video'), seenByCamera, () => seenByCamera('a code of somebody else'));

async function main() {
  await loadDevice();
  useLanguage(device.language ?? navigator.language);
  useSound(device.sound);
  document.body.classList.toggle('big', device.big);
  setUpMenu({ changePlace, refresh });
  setUpCamera();
  listenToHandScanner(text => document.body.dataset.screen === 'door' && scan(text));
  addEventListener('pointerdown', wakeSound);
  addEventListener('keydown', wakeSound);
  $('verdict').onclick = showReady;
  outbox.addEventListener('change', refresh);
  outbox.addEventListener('message', refresh);
  sync.addEventListener('change', refresh);
  setInterval(showHeard, 1_000);
  document.addEventListener('visibilitychange', onVisible);
  addEventListener('hashchange', () => location.hash.includes('enrol=') && location.reload());
  document.body.dataset.ready = '';

  if (!device.key || location.hash.includes('enrol=')) {
    await askForPlace(await askForKey());
  } else if (!device.place) {
    const me = await refreshMe().catch(() => device.me);
    await askForPlace(me ?? (await askForKey()));
  }
  await openDoor();
}

/** The scanner's screen, at the chosen place. */
async function openDoor() {
  showScreen('door');
  await loadTickets();
  await tidy();
  showReady();
  await resume();
  refresh();
  syncNow();
  refreshMe().catch(() => {});
  await startCamera();
}

async function changePlace() {
  camera.stop();
  const me = await refreshMe().catch(() => device.me);
  await askForPlace(me ?? (await askForKey()));
  await openDoor();
}

/** @type {Promise<void> | null} */
let refreshing = null;
let stale = false;

/** Writes everything that changes by itself. One writing at a time: a slow one must not overwrite newer numbers. */
function refresh() {
  stale = true;
  refreshing ??= (async () => {
    while (stale) {
      stale = false;
      await writeState();
    }
  })().finally(() => (refreshing = null));
  return refreshing;
}

async function writeState() {
  const { place } = device;
  if (!place) return;
  const { tickets } = sync;
  // Everything is read first, so that what is on the screen is of one moment.
  const unsent = await unsentCount();
  const own = await admissionsOn(place.list);
  const last = await undoable();
  const messages = (await all('messages')).length;
  $('event-name').textContent = place.eventName;
  $('place-name').textContent = [place.gateName, place.listName, t(place.kind)].filter(Boolean).join(' · ');
  document.body.dataset.kind = place.kind;
  $('unsent').textContent = amount(unsent);
  document.body.dataset.unsent = String(unsent);
  if (tickets) {
    let inside = tickets.usedUpCount(place.list);
    for (const news of own.filter(known => isNews(known, tickets))) {
      inside += Number(news.inside) - Number(tickets.isUsedUp(place.list, news.serial));
    }
    $('inside').textContent = amount(inside);
    $('inside-label').textContent = t('insideOf', { capacity: amount(tickets.kept.capacity) });
  }
  /** @type {HTMLButtonElement} */
  const undoButton = $('undo-open');
  undoButton.disabled = last === null;
  $('messages-open').hidden = messages === 0;
  $('messages-open').textContent = t('newMessages', { count: messages });
  const online = connection.online && !connection.keyRefused;
  document.body.dataset.connection = online ? 'online' : 'offline';
  const status = connection.keyRefused ? t('keyInvalid') : t(online ? 'online' : 'offline');
  // Only changes are read out.
  if ($('connection').textContent !== status) $('connection').textContent = status;
  const off = Math.abs(device.clockOffset);
  $('clock').hidden = off < CLOCK_MS;
  $('clock').textContent = t('clock', { difference: t('minutes', { count: Math.round(off / 60_000) }) });
  showHeard();
}

function showHeard() {
  if (connection.heardAt === null) {
    $('heard').textContent = t('neverHeard');
    return;
  }
  const seconds = Math.max(0, Math.round((Date.now() - connection.heardAt) / 1_000));
  const text = seconds < 120 ? t('heard', { seconds }) : t('heardMinutes', { minutes: Math.floor(seconds / 60) });
  $('heard').textContent = text;
}

function setUpCamera() {
  $('camera-start').onclick = () => startCamera();
  $('camera-next').onclick = async () => {
    showCamera(await camera.next());
    await remember('camera', camera.deviceId);
  };
  $('camera-torch').onclick = async () => {
    $('camera-torch').setAttribute('aria-pressed', String(await camera.toggleTorch()));
  };
  /** @type {HTMLInputElement} */
  const photo = $('photo');
  photo.onchange = async () => {
    const file = photo.files?.[0];
    photo.value = '';
    if (!file) return;
    show({ colour: '', word: t('checking') });
    const text = await readPhoto(file).catch(() => null);
    if (text === null) show({ colour: 'warn', word: t('look'), detail: t('photoNone') });
    else await scan(text);
  };
}

async function startCamera() {
  showCamera(await camera.start(device.camera));
  keepAwake();
}

/** @param {import('./camera.js').NoCamera | null} obstacle */
async function showCamera(obstacle) {
  document.body.dataset.camera = obstacle ? 'off' : 'on';
  $('no-camera').hidden = obstacle === null;
  if (obstacle) {
    $('no-camera-why').textContent = t(obstacle);
    $('no-camera-how').textContent = obstacle === 'cameraPlain' ? t('cameraPlainHow') : '';
    $('camera-start').hidden = obstacle === 'cameraPlain';
  }
  $('camera-torch').hidden = !camera.hasTorch;
  $('camera-torch').setAttribute('aria-pressed', 'false');
  $('camera-next').hidden = obstacle !== null || (await camera.cameras()).length < 2;
  if (document.body.dataset.result === '' && document.body.dataset.screen === 'door') showReady();
}

/** The screen stays on while the page is looked at. */
const keepAwake = () => navigator.wakeLock?.request('screen').catch(() => {});

function onVisible() {
  if (document.hidden || document.body.dataset.screen !== 'door') return;
  keepAwake();
  if (document.body.dataset.camera === 'on' && !camera.isRunning) startCamera();
}

if (isSecureContext && 'serviceWorker' in navigator) {
  navigator.serviceWorker.register(scriptAddress('/gate/sw.js'), { scope: '/gate' }).catch(console.warn);
}
// Without this a phone that runs out of space may throw away unsent scans.
navigator.storage?.persist?.();

main();

// What the phone keeps, in IndexedDB. It survives a reload and an empty battery.
//
//   settings    key, device, place at the door, sound, type size, language, camera
//   bundles     the tickets of an event, one record an event (bundle.js)
//   scans       every scan before it is sent, and the newest after (outbox.js); `order` counts up
//   admissions  what this phone has let in, by list and ticket number (decide.js)
//   messages    answers of the server that differ from what this phone decided

/** @type {Promise<IDBDatabase> | null} */
let opened = null;

function open() {
  opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open('stampede-gate', 1);
    request.onupgradeneeded = () => {
      const database = request.result;
      database.createObjectStore('settings');
      database.createObjectStore('bundles', { keyPath: 'target' });
      const scans = database.createObjectStore('scans', { keyPath: 'order', autoIncrement: true });
      scans.createIndex('state', 'state');
      database.createObjectStore('admissions', { keyPath: ['list', 'serial'] });
      database.createObjectStore('messages', { keyPath: 'id', autoIncrement: true });
    };
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  return opened;
}

/**
 * @template T
 * @param {IDBRequest<T>} request
 * @returns {Promise<T>}
 */
export const done = request =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/**
 * Runs `work` in one transaction; what it wrote is on disk when the promise is fulfilled, all of it or nothing.
 * @template T
 * @param {string[]} stores
 * @param {(...stores: IDBObjectStore[]) => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function change(stores, work) {
  const transaction = (await open()).transaction(stores, 'readwrite', { durability: 'strict' });
  const ended = new Promise((resolve, reject) => {
    transaction.oncomplete = resolve;
    transaction.onabort = transaction.onerror = () => reject(transaction.error ?? new Error('the phone could not write'));
  });
  try {
    const result = await work(...stores.map(name => transaction.objectStore(name)));
    await ended;
    return result;
  } catch (error) {
    ended.catch(() => {});
    try {
      transaction.abort();
    } catch {
      // It has ended already.
    }
    throw error;
  }
}

/** @param {string} store @param {IDBValidKey} key @returns {Promise<any>} */
export const get = async (store, key) => done((await open()).transaction(store).objectStore(store).get(key));

/** @param {string} store @returns {Promise<any[]>} */
export const all = async store => done((await open()).transaction(store).objectStore(store).getAll());

/** The scans in a state, in order. @param {string} state @returns {Promise<import('./types.d.ts').ScanRecord[]>} */
export const scansIn = async state =>
  done((await open()).transaction('scans').objectStore('scans').index('state').getAll(state));

/** @param {string} key @param {any} value */
export const setting = (key, value) => change(['settings'], store => done(store.put(value, key)));

/** Removes everything. */
export async function forgetEverything() {
  const names = ['settings', 'bundles', 'scans', 'admissions', 'messages'];
  await change(names, async (...stores) => {
    for (const store of stores) store.clear();
  });
}

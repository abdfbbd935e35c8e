// What the phone keeps, in IndexedDB. It survives a reload and an empty battery.
//
//   settings    key, device, place at the door, sound, type size, language, camera
//   bundles     the tickets of an event, one record an event (bundle.js)
//   scans       every scan before it is sent, and the newest after (outbox.js); `order` counts up
//   admissions  what this phone has let in, by list and ticket number (decide.js)
//   messages    answers of the server that differ from what this phone decided

/** @type {Promise<IDBDatabase> | null} */
let opened = null;

/** The browser has closed the database, or could not open it: the next use opens it again. */
const forget = () => {
  opened = null;
};

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
    request.onsuccess = () => {
      request.result.onclose = forget;
      resolve(request.result);
    };
    request.onerror = () => {
      forget();
      reject(request.error);
    };
  });
  return opened;
}

/**
 * Begins a transaction. Not every browser tells that it has closed the database: then this is tried once more.
 * @param {string | string[]} stores
 * @param {IDBTransactionMode} [mode]
 * @returns {Promise<IDBTransaction>}
 */
async function begin(stores, mode = 'readonly') {
  const database = await open();
  const start = (/** @type {IDBDatabase} */ of) => of.transaction(stores, mode, { durability: 'strict' });
  try {
    return start(database);
  } catch (error) {
    if (!(error instanceof DOMException && error.name === 'InvalidStateError')) throw error;
    forget();
    return start(await open());
  }
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
  const transaction = await begin(stores, 'readwrite');
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
export const get = async (store, key) => done((await begin(store)).objectStore(store).get(key));

/** @param {string} store @returns {Promise<any[]>} */
export const all = async store => done((await begin(store)).objectStore(store).getAll());

/** The scans in a state, in order. @param {string} state @returns {Promise<import('./types.d.ts').ScanRecord[]>} */
export const scansIn = async state =>
  done((await begin('scans')).objectStore('scans').index('state').getAll(state));

/** @param {string} key @param {any} value */
export const setting = (key, value) => change(['settings'], store => done(store.put(value, key)));

/** Removes everything. */
export async function forgetEverything() {
  const names = ['settings', 'bundles', 'scans', 'admissions', 'messages'];
  await change(names, async (...stores) => {
    for (const store of stores) store.clear();
  });
}

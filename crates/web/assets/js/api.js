// Calls of the API. Three endings: an answer, a refusal by the server, or no word from it.

/** The server did not answer, or cannot now: the call may be repeated. */
export class Unreachable extends Error {}

/** The server answered, and refused. */
export class Refused extends Error {
  /**
   * @param {number} status
   * @param {{detail?: string, code?: string}} problem
   */
  constructor(status, problem) {
    super(problem.detail ?? `status ${status}`);
    this.status = status;
    this.code = problem.code ?? null;
  }
}

/** Fires `change` when the server begins or ceases to answer, and when the key is refused. */
export const connection = Object.assign(new EventTarget(), {
  /** Whether the call that began last was answered, of those that have ended. */
  online: navigator.onLine,
  /** When the server was last heard, by this phone's clock; null: never. @type {number | null} */
  heardAt: /** @type {number | null} */ (null),
  /** Whether the server has refused the key. */
  keyRefused: false,
});

/** @type {string | null} */
let key = null;

/** @param {string | null} value */
export function useKey(value) {
  key = value;
  connection.keyRefused = false;
}

/** Calls that have begun, and losses of the network, counted. */
let begun = 0;
/** The newest of them that has told whether the server answers. */
let told = 0;
/** Calls that have no answer yet. @type {Set<AbortController>} */
const open = new Set();

/**
 * An older call that ends later than a newer one says nothing about now.
 * @param {number} call
 * @param {boolean} online
 */
function noteConnection(call, online) {
  if (online) connection.heardAt = Date.now();
  if (call < told) return;
  told = call;
  const changed = connection.online !== online;
  connection.online = online;
  if (changed) connection.dispatchEvent(new Event('change'));
}

/** A network that has gone brings no answers: nobody waits for them until their time is up. */
function loseNetwork() {
  noteConnection(++begun, false);
  for (const call of open) call.abort();
}

/**
 * Calls the API.
 * @param {'GET' | 'POST'} method
 * @param {string} path
 * @param {{body?: unknown, timeout?: number}} [options]
 * @returns {Promise<any>}
 */
export async function call(method, path, { body, timeout = 10_000 } = {}) {
  /** @type {Record<string, string>} */
  const headers = { accept: 'application/json' };
  if (key) headers.authorization = `Bearer ${key}`;
  if (body !== undefined) headers['content-type'] = 'application/json';
  const number = ++begun;
  const ending = new AbortController();
  const timer = setTimeout(() => ending.abort(), timeout);
  open.add(ending);
  let response;
  let text;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: 'no-store',
      credentials: 'omit',
      signal: ending.signal,
    });
    text = await response.text();
  } catch (error) {
    noteConnection(number, false);
    throw new Unreachable(String(error));
  } finally {
    clearTimeout(timer);
    open.delete(ending);
  }
  if (response.status === 429 || response.status >= 500) {
    noteConnection(number, false);
    throw new Unreachable(`status ${response.status}`);
  }
  noteConnection(number, true);
  /** @type {any} */
  let json = null;
  try {
    json = text ? JSON.parse(text) : null;
  } catch {
    throw new Unreachable('the answer was cut off');
  }
  if (response.ok) return json;
  if (response.status === 401 && key) {
    connection.keyRefused = true;
    connection.dispatchEvent(new Event('change'));
  }
  throw new Refused(response.status, json ?? {});
}

addEventListener('offline', loseNetwork);

// The real binary with an event: tickets, gates, devices, and the log of scans as its organiser sees it.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, openSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { atEnd } from './ending.mjs';

const run = promisify(execFile);
const ADMIN = 'the-admin-key-of-the-gate-tests';

/** Asks until the answer is truthy. */
export async function eventually(what, question, deadline = 20_000) {
  const until = Date.now() + deadline;
  let last;
  for (;;) {
    try {
      last = await question();
      if (last) return last;
    } catch (error) {
      last = error;
    }
    if (Date.now() > until) throw new Error(`not within ${deadline} ms: ${what}; last: ${last?.stack ?? JSON.stringify(last)}`);
    await new Promise(resolve => setTimeout(resolve, 40));
  }
}

async function freePort() {
  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address();
  listener.close();
  await once(listener, 'close');
  return port;
}

/** Starts the binary on a free port. */
export async function startServer() {
  const folder = mkdtempSync(join(tmpdir(), 'gate-server-'));
  const port = await freePort();
  const log = join(folder, 'log');
  const out = openSync(log, 'w');
  const env = { PATH: process.env.PATH, DATA_DIR: join(folder, 'data'), PORT: String(port), ADMIN_KEY: ADMIN, WORKER_COUNT: '1' };
  const child = spawn(process.env.ENGINE, ['serve'], { env, stdio: ['ignore', out, out] });
  atEnd(async () => {
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  });
  const url = `http://127.0.0.1:${port}`;
  await eventually('the server is ready', async () => {
    if (child.exitCode !== null) throw new Error(readFileSync(log, 'utf8'));
    return (await fetch(`${url}/ready`)).ok;
  }, 40_000);

  /** A call with a key; the answer's JSON. Throws unless the status is one of success. */
  async function call(method, path, body, key = ADMIN) {
    const headers = { authorization: `Bearer ${key}` };
    if (body !== undefined) headers['content-type'] = 'application/json';
    const response = await fetch(url + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text ? JSON.parse(text) : null;
  }

  /** An event with tickets (their ids and the texts of their codes, as they were printed) and gates. */
  async function openEvent({ name = 'Opening Night', tickets = 8, gates = ['Gate A', 'Gate B'] } = {}) {
    const event = await call('POST', '/api/events', { name, location: 'Main Hall', startsAt: '2027-03-01T19:30:00+01:00', timeZone: 'Europe/Berlin' });
    const holders = Array.from({ length: tickets }, (_, i) => ({ name: `Guest ${i + 1}`, seat: `Row C, Seat ${i + 1}` }));
    const { batchId } = await call('POST', '/api/tickets', { target: event.id, holders });
    const pdf = await eventually('the tickets are printed', async () => {
      const batch = await call('GET', `/api/batches/${batchId}`);
      if (batch.completed !== tickets) return null;
      const response = await fetch(`${url}/api/batches/${batchId}/pdf`, { headers: { authorization: `Bearer ${ADMIN}` } });
      return response.ok ? Buffer.from(await response.arrayBuffer()) : null;
    }, 60_000);
    const { tokens, page } = await printed(folder, pdf);
    if (tokens.length !== tickets) throw new Error(`${tokens.length} codes on ${tickets} tickets`);
    const made = [];
    for (const gate of gates) made.push(await call('POST', `/api/events/${event.id}/gates`, { name: gate }));
    const listed = (await call('GET', `/api/tickets?target=${event.id}&limit=100`)).tickets;
    const numbered = Object.fromEntries(listed.map(ticket => [ticket.number, ticket]));
    return {
      id: event.id,
      gates: made,
      /** The printed ticket as a picture. */
      page,
      /** The text of the code of ticket 1, 2, 3 … */
      token: number => tokens[number - 1],
      ticketId: number => numbered[number].id,
      device: (deviceName, gate) => call('POST', `/api/events/${event.id}/devices`, { name: deviceName, gate: made[gate]?.id }),
      /** The log, oldest first. */
      scans: async () => (await call('GET', `/api/events/${event.id}/scans?limit=100`)).scans.toReversed(),
      conflicts: async () => (await call('GET', `/api/events/${event.id}/conflicts`)).conflicts,
      withdraw: number => call('PATCH', `/api/tickets/${numbered[number].id}`, { status: 'void' }),
    };
  }

  return { url, port, folder, call, openEvent };
}

/** The texts of the codes on a PDF's pages, read by a program that is not ours; and a page as a picture. */
async function printed(folder, bytes) {
  const place = mkdtempSync(join(folder, 'pages-'));
  const pdf = join(place, 'all.pdf');
  writeFileSync(pdf, bytes);
  // Only the part with the code: the whole pages take many seconds.
  await run('pdftoppm', ['-r', '110', '-gray', '-x', '120', '-y', '860', '-W', '320', '-H', '320', pdf, join(place, 'code')]);
  const codes = readdirSync(place).filter(name => name.startsWith('code')).sort().map(name => join(place, name));
  const { stdout } = await run('zbarimg', ['-q', '--raw', ...codes]);
  const page = async number => {
    const path = join(place, `page-${number}`);
    await run('pdftoppm', ['-r', '110', '-png', '-singlefile', '-f', String(number), '-l', String(number), pdf, path]);
    return `${path}.png`;
  };
  return { tokens: stdout.trim().split('\n'), page };
}

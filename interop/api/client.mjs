// @ts-check
// The main way in Node, with a client that is typed by the server's document (openapi-typescript and openapi-fetch): create an
// event, order tickets, wait until they are made, download a PDF, redeem a ticket. `tsc` checks this file against the document before it runs.

import assert from 'node:assert/strict';
import createClient from 'openapi-fetch';

const [url, key] = process.argv.slice(2);
/** @type {ReturnType<typeof createClient<import('./schema.d.ts').paths>>} */
const api = createClient({ baseUrl: url, headers: { Authorization: `Bearer ${key}` } });

const created = await api.POST('/api/events', { body: { name: 'Opening Night', currency: 'EUR' } });
assert(created.data, JSON.stringify(created.error));

const ordered = await api.POST('/api/tickets', {
  body: { target: created.data.id, name: 'Ann Example', quantity: 3 },
  params: { header: { 'Idempotency-Key': 'order-1' } },
});
assert(ordered.data, JSON.stringify(ordered.error));
const { batchId, tickets } = ordered.data;
assert.equal(tickets.length, 3);

const deadline = Date.now() + 60_000;
for (;;) {
  const { data: batch } = await api.GET('/api/batches/{id}', { params: { path: { id: batchId } } });
  if (batch?.status === 'completed') break;
  assert(Date.now() < deadline, 'the tickets are not made in time');
  await new Promise((wake) => setTimeout(wake, 100));
}

const path = { id: tickets[0] };
const { data: ticket } = await api.GET('/api/tickets/{id}', { params: { path } });
assert.equal(ticket?.name, 'Ann Example');
const { response, data: pdf } = await api.GET('/api/tickets/{id}/pdf', { params: { path }, parseAs: 'arrayBuffer' });
assert.equal(response.status, 200);
assert(pdf && Buffer.from(pdf).subarray(0, 5).toString() === '%PDF-');

// A refusal is typed, too.
const missing = { id: '01890a5d-ac96-774b-bcce-b302099a8057' };
const { error } = await api.GET('/api/tickets/{id}', { params: { path: missing } });
assert.equal(error?.code, 'not_found');

// At the door: a device has a key of its own.
const event = { id: created.data.id };
const gate = await api.POST('/api/events/{id}/gates', { params: { path: event }, body: { name: 'North' } });
assert(gate.data, JSON.stringify(gate.error));
const device = await api.POST('/api/events/{id}/devices', {
  params: { path: event },
  body: { name: 'Phone 1', gate: gate.data.id },
});
assert(device.data, JSON.stringify(device.error));
/** @type {typeof api} */
const door = createClient({ baseUrl: url, headers: { Authorization: `Bearer ${device.data.key}` } });
/** @param {string} nonce */
const redeem = async (nonce) => {
  const { data, error: problem } = await door.POST('/api/checkin/redeem', { body: { ticketId: tickets[0], nonce } });
  assert(data, JSON.stringify(problem));
  return data;
};
const first = await redeem('scan-1');
assert.deepEqual([first.result, first.ok, first.ticket?.name, first.gateName], ['ok', true, 'Ann Example', 'North']);
const repeated = await redeem('scan-1');
assert.deepEqual([repeated.result, repeated.replayed, repeated.scan], ['ok', true, first.scan]);
const second = await redeem('scan-2');
assert.deepEqual([second.result, second.previous?.scan, second.previous?.gateName], ['already_redeemed', first.scan, 'North']);
console.log('node: an event, an order, a PDF, a ticket redeemed once, with a generated client');

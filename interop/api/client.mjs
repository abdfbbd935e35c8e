// @ts-check
// The main way in Node, with a client that is typed by the server's document (openapi-typescript and openapi-fetch): create an
// event, order tickets, wait until they are made, download a PDF. `tsc` checks this file against the document before it runs.

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
// Redeeming at the door goes here.
console.log('node: an event, an order, a PDF, with a generated client');

// Adds jobs with Node's BullMQ, one after the other, until SIGTERM; for the fault campaign (crates/server/tests/it/faults).
//   node adder.mjs URL QUEUE BOOK MILLISECONDS
// Ids are BullMQ's own numbers. Nothing is sent twice: an add without an answer is "unknown", it may have happened or not.
// The book has a line for each add, synced: "asked TOKEN", then "acked TOKEN ID" or "unknown TOKEN REASON".
import { openSync, writeSync, fdatasyncSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';

const [url, name, file, longest] = process.argv.slice(2);
const book = openSync(file, 'a');
const write = (line) => {
  writeSync(book, `${line}\n`);
  fdatasyncSync(book);
};
const connection = new Redis(url, {
  maxRetriesPerRequest: null,
  // What was sent and not answered is never sent again; what waits for a connection was not sent yet.
  autoResendUnfulfilledCommands: false,
  connectTimeout: 3000,
  commandTimeout: 15000,
  retryStrategy: () => 200,
});
// All events are kept until they are counted.
const queue = new Queue(name, { connection, streams: { events: { maxLen: 10000000 } } });
queue.on('error', () => {});
connection.on('error', () => {});
let going = true;
process.on('SIGTERM', () => (going = false));

for (let number = 0; going; number++) {
  const token = `node-${number}`;
  write(`asked ${token}`);
  try {
    const job = await queue.add('errand', { token });
    write(`acked ${token} ${job.id}`);
  } catch (error) {
    write(`unknown ${token} ${String(error.message).replaceAll('\n', ' ')}`);
  }
  await pause(Math.random() * Number(longest));
}
process.exit(0);

// Node's side of `stampede bench queue`: reads one JSON request a line, answers with one JSON line.
// Runs beside npm's bullmq in the cache folder; see node.rs.
import { createInterface } from 'node:readline';
import { Queue, Worker } from 'bullmq';

const connection = { path: process.argv[2], maxRetriesPerRequest: null };
// The wall's clock, for those who compare with others; and one that all processes of a machine share to the microsecond.
const now = () => performance.timeOrigin + performance.now();
const shared = () => Number(process.hrtime.bigint()) / 1e6;
const template = JSON.parse(process.argv[3]);
const payload = (number) => ({ ...template, number });
// The same as ours.
const options = {
  attempts: 3,
  backoff: { type: 'exponential', delay: 2000 },
  removeOnComplete: { age: 24 * 3600, count: 10000 },
  removeOnFail: { age: 7 * 24 * 3600, count: 100000 },
};
const queues = new Map();

function queue(name) {
  if (!queues.has(name)) queues.set(name, new Queue(name, { connection }));
  return queues.get(name);
}

let worker;

const requests = {
  async add({ name, jobs, at_once }) {
    const target = queue(name);
    await target.waitUntilReady();
    const started = now();
    let next = 0;
    const lane = async () => {
      while (next < jobs) {
        const number = next++;
        await target.add('job', payload(number), { ...options, jobId: `job-${number}` });
      }
    };
    await Promise.all(Array.from({ length: at_once }, lane));
    return { seconds: (now() - started) / 1000 };
  },

  async bulk({ name, jobs, chunk }) {
    const target = queue(name);
    await target.waitUntilReady();
    const started = now();
    for (let from = 0; from < jobs; from += chunk) {
      const count = Math.min(chunk, jobs - from);
      await target.addBulk(
        Array.from({ length: count }, (_, index) => ({
          name: 'job', data: payload(from + index), opts: { ...options, jobId: `job-${from + index}` },
        })),
      );
    }
    return { seconds: (now() - started) / 1000 };
  },

  // Adds jobs one by one, each at its time, with the moment of its addition in its data.
  async pace({ name, rate, seconds }) {
    const target = queue(name);
    await target.waitUntilReady();
    const started = now();
    const adding = [];
    for (let number = 0; number < rate * seconds; ) {
      const due = Math.floor(((now() - started) / 1000) * rate);
      for (; number < due && number < rate * seconds; number++) {
        adding.push(target.add('job', { ...payload(number), addedAt: shared() }, { ...options, jobId: `job-${number}` }));
      }
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await Promise.all(adding);
    return {};
  },

  // Works until it has seen `jobs`; answers with the time of the first, and waits in ms. `rest` ends it.
  async work({ name, slots, jobs }) {
    let seen = 0, first, finish;
    const waits = [];
    const done = new Promise((resolve) => { finish = resolve; });
    worker = new Worker(name, async (job) => {
      const start = now();
      first ??= start;
      if (job.data.addedAt) waits.push(shared() - job.data.addedAt);
      if (++seen === jobs) finish();
      return null;
    }, { connection, concurrency: slots });
    await worker.waitUntilReady();
    process.stdout.write('{"ready":true}\n');
    await done;
    return { first, waits };
  },

  async rest() {
    await worker.close();
    return {};
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  const answer = await requests[request.do](request);
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
for (const open of queues.values()) await open.close();

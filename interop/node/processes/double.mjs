// A processor file for BullMQ's sandbox: it runs in a process or thread that BullMQ starts.

export default async function (job) {
  await job.log('in the sandbox');
  await job.updateProgress(50);
  if (job.data.fail) throw new Error('sandbox failure');
  if (job.data.exit) process.exit(3);
  await job.updateData({ ...job.data, seen: true });
  return { twice: job.data.n * 2, pid: process.pid };
}

// Prints one line per file, every failure in full, and the sum: a run of hundreds of tests stays readable.

const seconds = ms => (ms / 1000).toFixed(1);

export default async function* report(source) {
  const files = new Map();
  const failures = [];
  const sum = { passed: 0, failed: 0, skipped: 0 };
  const began = Date.now();
  for await (const { type, data } of source) {
    if (type === 'test:stdout' || type === 'test:stderr') {
      yield data.message;
      continue;
    }
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    // A suite is not a test, and a file is the frame around its tests.
    if (data.details?.type === 'suite') continue;
    const own = data.nesting === 0 && data.file?.endsWith(data.name);
    if (own && type === 'test:pass') continue;
    const name = (data.file ?? data.name).split('/').at(-1);
    const file = files.get(name) ?? { passed: 0, failed: 0, skipped: 0, ms: 0 };
    files.set(name, file);
    const outcome = data.skip !== undefined ? 'skipped' : type === 'test:pass' ? 'passed' : 'failed';
    file[outcome]++;
    sum[outcome]++;
    file.ms += data.details?.duration_ms ?? 0;
    if (outcome === 'failed') {
      failures.push([name, data]);
      const cause = data.details?.error?.cause ?? data.details?.error;
      yield `FAILED ${name}: ${data.name}\n${indent(cause?.stack ?? String(cause))}\n`;
    }
    if (outcome === 'skipped') yield `skipped ${name}: ${data.name} (${data.skip})\n`;
  }
  for (const [name, file] of [...files].sort()) {
    const failed = file.failed ? `, ${file.failed} FAILED` : '';
    const skipped = file.skipped ? `, ${file.skipped} skipped` : '';
    yield `${name.padEnd(24)} ${String(file.passed).padStart(3)} passed${failed}${skipped} (${seconds(file.ms)} s)\n`;
  }
  for (const [name, data] of failures) yield `FAILED ${name}: ${data.name}\n`;
  yield `${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped in ${seconds(Date.now() - began)} s\n`;
}

const indent = text => text.split('\n').map(line => `    ${line}`).join('\n');

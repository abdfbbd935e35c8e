// What a file of tests has started ends with it, the last first.

import { after } from 'node:test';

const endings = [];

/** Runs when all tests of the file are done, wherever it is called from. */
export const atEnd = end => endings.push(end);

after(async () => {
  for (const end of endings.reverse()) await end();
});

// Reads {keys, tokens} from stdin and writes what each verifier says of each token:
// node each.mjs verify.mjs (docs/ticket-token.md) folder-of-the-gate-page

import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const [page, gate] = process.argv.slice(2);
const { keys, tokens } = JSON.parse(readFileSync(0, 'utf8'));
const { verify } = await import(pathToFileURL(page));
const { readToken, isSignedBy } = await import(pathToFileURL(`${gate}/js/token.js`));
const { decide } = await import(pathToFileURL(`${gate}/js/decide.js`));
const { Tickets } = await import(pathToFileURL(`${gate}/js/bundle.js`));

const bytes = hex => Uint8Array.from(hex.match(/../g), digits => parseInt(digits, 16));
const list = { id: keys.event, name: 'Main', opensAt: null, closesAt: null, entries: 1, reentry: false };
/** The generation of a ticket is a matter of the bundle: here the one that is shown. */
const tickets = shown => new Tickets({
  target: keys.event, name: '', seq: 1, capacity: 0, lists: [list], gates: [],
  keys: keys.keys.map(key => ({ kid: key.kid, publicKey: bytes(key.publicKey), revoked: key.revokedAt !== null })),
  voided: new Uint8Array(), generations: new Map([[shown.serial, shown.generation]]), members: new Map(), usedUp: new Map(),
});

/** The gate page's own decision, without a network. */
async function atGate(text) {
  const token = readToken(text);
  if (!token) return 'malformed';
  const known = tickets(token);
  const key = known.key(token.key);
  const signed = key !== null && (await isSignedBy(token, key.publicKey));
  return decide({ token, signed, tickets: known, list, own: null, kind: 'entry', now: 0 }).result;
}

const said = [];
for (const token of tokens) said.push({ ...(await verify(token, keys)), gate: await atGate(token) });
console.log(JSON.stringify(said));

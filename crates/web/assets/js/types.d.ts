// Types of what the server sends and of what the phone keeps; for `tsc --checkJs`, never sent to a browser.

/** Why a ticket is not let in; the words of the API. */
export type Reason =
  | 'already_redeemed' | 'void' | 'superseded' | 'revoked_key' | 'forged' | 'malformed' | 'wrong_event'
  | 'not_on_list' | 'not_yet' | 'expired' | 'blocked' | 'unknown' | 'not_inside';

export type Result = 'ok' | Reason;
export type Kind = 'entry' | 'exit';

export interface List {
  id: string;
  name: string;
  opensAt: string | null;
  closesAt: string | null;
  entries: number;
  reentry: boolean;
  members?: string | null;
}

export interface Gate { id: string; name: string }

export interface Device {
  id: string;
  target: string;
  name: string;
  gate: string | null;
  list: string | null;
}

export interface EventSummary { id: string; name: string; startsAt: string | null; timeZone: string | null }

/** `GET /api/checkin/me` */
export interface Me {
  device: Device | null;
  user: string;
  role: string;
  events: EventSummary[];
  serverTime: string;
}

/** The answer to one scan. */
export interface Redeemed {
  result: Result;
  ok: boolean;
  kind: Kind;
  scan: string | null;
  seq: number | null;
  at: string;
  ticket: { id: string; number: number; name: string; seat: string | null; batchId: string } | null;
  event: { id: string; name: string } | null;
  entries: number | null;
  entriesAllowed: number | null;
  inside: boolean | null;
  previous: { at: string; gate: string | null; gateName: string | null; device: string | null; deviceName: string; scan: string } | null;
  detail: string;
  conflict: boolean;
  replayed: boolean;
}

/** A scan as the phone keeps it, before and after the server knows of it. */
export interface ScanRecord {
  /** Place in the order of scans; given by the database. */
  order?: number;
  type: 'scan' | 'undo';
  nonce: string;
  token?: string;
  ticketId?: string;
  target: string;
  list: string;
  gate: string | null;
  gateName: string | null;
  kind: Kind;
  at: string;
  /** asking: the server is being asked; unsent: the phone has decided, the server does not know; done: it knows. */
  state: 'asking' | 'unsent' | 'done' | 'undone';
  offline: boolean;
  verdict: Result | null;
  serial: number | null;
  name: string | null;
  seat: string | null;
  /** What this phone knew of the ticket before, to be restored by an undo. */
  before: Admission | null;
  /** Undone before it was sent. */
  undone?: boolean;
  /** Why it is undone. */
  reason?: string;
  /** Why the server did not take it. */
  refused?: string;
}

/** What this phone knows of a ticket that it has let in or out. */
export interface Admission {
  list: string;
  serial: number;
  used: number;
  inside: boolean;
  at: string;
  gateName: string | null;
  nonce: string;
  /** The server's number of the scan; null while it does not know of it. */
  seq: number | null;
  /** The nonce of the scan whose undo has made this, until the server has answered the undo. */
  undo?: string;
}

export interface Message { id?: number; at: string; text: string; params: Record<string, string> }

/** What the door shows. */
export interface Verdict {
  colour: 'ok' | 'no' | 'warn' | '';
  word: string;
  who?: string;
  detail?: string;
  todo?: string;
}

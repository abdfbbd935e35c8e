//! A client's session: identity, protocol, transaction, watches, subscriptions, blocked command.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::time::Instant;

use bytes::Bytes;

use super::blocked::BlockedCommand;
use super::loop_queue::{Address, ClientId};
use crate::blob::Blob;
use crate::command::{
    self, Command, NO_AUTH, NO_MULTI, READ, SUBCOMMANDS, WHILE_SUBSCRIBED, WRITE,
};
use crate::db::{Db, Watch};
use crate::journal::Position;
use crate::reply::Protocol;

/// All sessions, by client id.
pub(super) type Sessions = HashMap<ClientId, Session, BuildHasherDefault<ClientIdHasher>>;

/// Hashes client ids; the server chose them, so they need no keyed hash.
#[derive(Debug, Default)]
pub(super) struct ClientIdHasher(u64);

impl Hasher for ClientIdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// The mode of `CLIENT REPLY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ReplyMode {
    #[default]
    On,
    Off,
    /// Skips the reply to the next command.
    SkipNext,
    /// Skips the reply to this command, which follows `CLIENT REPLY SKIP`.
    Skip,
}

impl ReplyMode {
    /// The mode after a command that was answered, or whose reply was dropped.
    pub(super) fn after_reply(self) -> Self {
        match self {
            Self::SkipNext => Self::Skip,
            Self::Skip => Self::On,
            mode => mode,
        }
    }
}

/// The commands queued between `MULTI` and `EXEC`.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    pub(super) queue: Vec<(&'static Command, Vec<Bytes>)>,
    /// The size of the queued arguments.
    pub(super) bytes: usize,
    /// Whether a command could not be queued, so that `EXEC` runs none of them.
    pub(super) aborted: bool,
}

/// The executor's state of a connected client.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: ClientId,
    pub(super) address: Address,
    /// The peer address, as `CLIENT LIST` shows it.
    pub(super) peer: String,
    pub(super) local: String,
    pub(super) since: Instant,
    pub(super) active: Instant,
    pub(super) name: Blob,
    pub(super) library: (Blob, Blob),
    pub(super) authenticated: bool,
    pub(super) protocol: Protocol,
    pub(super) db: usize,
    pub(super) reply_mode: ReplyMode,
    /// Whether the client sees all commands (`MONITOR`).
    pub(super) monitors: bool,
    /// The last record of the journal that the client has written.
    pub(super) written: Position,
    last_command: &'static str,
    /// The subcommand of the last command, such as `|list` of `CLIENT LIST`.
    last_subcommand: String,
    pub(super) transaction: Option<Transaction>,
    pub(super) watches: Vec<Watch>,
    pub(super) channels: BTreeSet<Blob>,
    pub(super) patterns: BTreeSet<Blob>,
    pub(super) blocked: Option<BlockedCommand>,
}

impl Session {
    pub(super) fn new(address: Address, peer: String, local: String, authenticated: bool) -> Self {
        let now = Instant::now();
        Self {
            id: address.slot.client,
            address,
            peer,
            local,
            since: now,
            active: now,
            name: Blob::EMPTY,
            library: (Blob::EMPTY, Blob::EMPTY),
            authenticated,
            protocol: Protocol::Resp2,
            db: 0,
            reply_mode: ReplyMode::On,
            monitors: false,
            written: Position(0),
            last_command: "NULL",
            last_subcommand: String::new(),
            transaction: None,
            watches: Vec::new(),
            channels: BTreeSet::new(),
            patterns: BTreeSet::new(),
            blocked: None,
        }
    }

    /// The number of channels and patterns the client has subscribed to.
    pub(super) fn subscriptions(&self) -> usize {
        self.channels.len() + self.patterns.len()
    }

    /// Whether the client may only manage its subscriptions (RESP 2).
    pub(super) fn is_subscriber(&self) -> bool {
        self.protocol == Protocol::Resp2 && self.subscriptions() > 0
    }

    /// The error reply if the client may not call the command now.
    pub(super) fn refusal(&self, command: &Command, args: &[Bytes]) -> Option<String> {
        if !self.authenticated && !command.flags.has(NO_AUTH) {
            return Some("NOAUTH Authentication required.".to_owned());
        }
        if self.transaction.is_some() && command.flags.has(NO_MULTI) {
            return Some("ERR Command not allowed inside a transaction".to_owned());
        }
        let uses_keys = command.flags.has(READ) || command.flags.has(WRITE);
        let may_write = command.name.starts_with("eval") || command.name == "publish";
        if self.monitors && (uses_keys || may_write) {
            return Some("ERR Replica can't interact with the keyspace".to_owned());
        }
        if self.is_subscriber() && !command.flags.has(WHILE_SUBSCRIBED) {
            return Some(format!(
                "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET \
                 are allowed in this context",
                command.full_name(args)
            ));
        }
        None
    }

    /// Remembers the last command, for `CLIENT LIST`.
    pub(super) fn note_command(&mut self, command: &Command, args: &[Bytes]) {
        self.last_command = command.name;
        self.last_subcommand.clear();
        if command.flags.has(SUBCOMMANDS)
            && let Some(word) = args.get(1)
        {
            self.last_subcommand = format!("|{}", String::from_utf8_lossy(word).to_lowercase());
        }
    }

    /// Remembers a refused command; an unknown command is shown as `NULL`.
    pub(super) fn note_refused(&mut self, args: &[Bytes]) {
        let known = command::knows(args).then(|| args.first().and_then(|name| command::find(name)));
        match known.flatten() {
            Some(command) => self.note_command(command, args),
            None => {
                self.last_command = "NULL";
                self.last_subcommand.clear();
            }
        }
    }

    /// Marks the open transaction as failed: a command could not be queued.
    pub(super) fn mark_transaction_aborted(&mut self) {
        if let Some(transaction) = &mut self.transaction {
            transaction.aborted = true;
        }
    }

    /// Whether a watched key has changed, so that `EXEC` will fail.
    pub(super) fn has_stale_watch(&self, db: &Db) -> bool {
        self.watches.iter().any(|watch| db.is_stale(watch))
    }

    /// The client's line in `CLIENT LIST`.
    pub(super) fn describe(&self, db: &Db) -> String {
        let mut flags = String::new();
        for (flag, on) in [
            ('O', self.monitors),
            ('P', self.subscriptions() > 0),
            ('x', self.transaction.is_some()),
            ('b', self.blocked.is_some()),
            ('d', self.has_stale_watch(db)),
        ] {
            if on {
                flags.push(flag);
            }
        }
        if flags.is_empty() {
            flags.push('N');
        }
        let multi = self.transaction.as_ref().map_or(-1, |queued| queued.queue.len() as i64);
        let text = |blob: &Blob| String::from_utf8_lossy(blob).into_owned();
        format!(
            "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={flags} db={} sub={} psub={} \
             ssub=0 multi={multi} qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 \
             omem=0 tot-mem=0 events=r cmd={}{} user=default redir=-1 resp={} lib-name={} lib-ver={}",
            self.id,
            self.peer,
            self.local,
            self.address.slot.index,
            text(&self.name),
            self.since.elapsed().as_secs(),
            self.active.elapsed().as_secs(),
            self.db,
            self.channels.len(),
            self.patterns.len(),
            self.last_command,
            self.last_subcommand,
            if self.protocol == Protocol::Resp3 { 3 } else { 2 },
            text(&self.library.0),
            text(&self.library.1),
        )
    }
}

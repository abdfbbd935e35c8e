//! The executor: keyspace, scripts, journal and sessions, behind one lock.
//!
//! The thread that read a request locks the executor and runs it here, so commands are serial and stay
//! on one thread (`server.rs` says why). [`Executor::run`] runs one command of one client. It makes
//! Redis's checks in Redis's order:
//!
//! ```text
//!   run ─▶ known? arity? password? subscriber? memory? journal writable? ─▶ in MULTI: queue
//!            └▶ call ─▶ keyspace command (crate::command)  or  connection command (connection_commands.rs)
//!                 └▶ settle: effects → journal · blocked clients served · messages sent to loops
//! ```
//!
//! The executor must not block: sockets belong to the event loops, and records reach the kernel without the
//! executor's lock, before the replies leave (`event_loop.rs`).

mod connection_commands;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use super::OnShutdown;
use super::blocked::BlockedClients;
use super::compaction::Compactor;
use super::loop_queue::{Address, ClientId, LoopMessage, LoopQueue, Slot};
use super::memory::Memory;
use super::monitor::Monitors;
use super::pubsub::Pubsub;
use super::request::AuthState;
use super::session::{ReplyMode, Session, Sessions};
use super::settings::Settings;
use super::shared::{Counters, DependsOn};
use super::slowlog::Slowlog;
use super::stats::Stats;
use crate::command::{self, BLOCKING, CONNECTION, Calls, Command, NOT_QUEUED, Outcome, WRITE};
use crate::db::{Blocking, Db, Expiry};
use crate::journal::{self, Journal, Position};
use crate::lua::Scripts;
use crate::reply::Reply;

/// The number of keys expired in one go before clients are served again.
const EXPIRED_AT_ONCE: usize = 500;
/// The interval of active expiry; between runs, lazy expiry hides expired keys.
const EXPIRY_PERIOD: Duration = Duration::from_millis(100);
/// The interval of checks for a sync that a client waits for (`WAITAOF`).
const SYNC_PAUSE: Duration = Duration::from_millis(2);

/// The state of a client that its event loop knows without the executor's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Standing {
    /// Whether the client is authenticated, or needs no password.
    pub(super) auth_state: AuthState,
    /// Whether the client is between `MULTI` and `EXEC`.
    pub(super) in_transaction: bool,
}

/// The event loop's next action for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Run the client's next command.
    Go,
    /// Run nothing until a message unblocks the client.
    Block,
    /// Run this command again when the journal has room.
    Hold,
    /// Send the pending output and close.
    Close,
}

/// Whether the effects of a command are in the journal, or need not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recorded {
    Yes,
    No,
}

/// Whether the journal accepts writes now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WriteGate {
    Open,
    /// Not now, but soon: the command is held back.
    Busy,
    /// No; the text is the error reply.
    Refused(String),
}

/// All state behind the executor's lock.
pub(super) struct Executor {
    pub(super) db: Db,
    pub(super) scripts: Scripts,
    pub(super) sessions: Sessions,
    pub(super) blocked: BlockedClients,
    pub(super) pubsub: Pubsub,
    pub(super) settings: Settings,
    pub(super) counters: Arc<Counters>,
    pub(super) slowlog: Slowlog,
    pub(super) stats: Stats,
    pub(super) calls: Calls,
    pub(super) memory: Memory,
    pub(super) monitors: Monitors,
    /// Whether memory was full when the running command began; scripts go by it.
    pub(super) began_full: bool,
    pub(super) journal: Option<Journal>,
    pub(super) compactor: Compactor,
    pub(super) on_shutdown: Option<OnShutdown>,
    /// The position of the last appended record.
    pub(super) position: Position,
    /// The position when the last command was settled.
    settled: Position,
    /// The event loop whose thread holds the lock.
    pub(super) lock_holder: Option<usize>,
    /// Whether commands may block; they may not inside a transaction.
    blocking: Blocking,
    /// Why a record could not be appended; from then on all writes are refused.
    lost: Option<String>,
    next_expiry: Instant,
}

impl Executor {
    pub(super) fn new(
        db: Db,
        journal: Option<Journal>,
        settings: Settings,
        counters: Arc<Counters>,
    ) -> Self {
        let position = journal.as_ref().map_or(Position(0), |journal| journal.durable());
        Self {
            db,
            scripts: Scripts::new(super::VERSION),
            sessions: Sessions::default(),
            blocked: BlockedClients::default(),
            pubsub: Pubsub::default(),
            slowlog: Slowlog::default(),
            stats: Stats::new(),
            settings,
            counters,
            calls: Calls::default(),
            memory: Memory::default(),
            monitors: Monitors::default(),
            began_full: false,
            journal,
            compactor: Compactor::default(),
            on_shutdown: None,
            position,
            settled: position,
            lock_holder: None,
            blocking: Blocking::Allowed,
            lost: None,
            next_expiry: Instant::now(),
        }
    }

    /// Creates a session for a new client.
    pub(super) fn connect(
        &mut self,
        loop_queue: &Arc<LoopQueue>,
        slot: Slot,
        (peer, local): (String, String),
        auth_state: AuthState,
    ) {
        self.stats.connections += 1;
        let address = Address { loop_queue: loop_queue.clone(), slot };
        let session = Session::new(address, peer, local, auth_state == AuthState::Authenticated);
        self.sessions.insert(slot.client, session);
    }

    /// What the event loop must know of a client to answer it while a script runs too long.
    pub(super) fn standing(&self, client: ClientId) -> Standing {
        let session = self.sessions.get(&client);
        Standing {
            auth_state: match session.is_some_and(|one| one.authenticated) {
                true => AuthState::Authenticated,
                false => AuthState::Unauthenticated,
            },
            in_transaction: session.is_some_and(|one| one.transaction.is_some()),
        }
    }

    /// Ends a client's session: blocked command, watches and subscriptions included.
    pub(super) fn disconnect(&mut self, client: ClientId) {
        self.unblock_client(client);
        self.unwatch(client);
        self.forget_subscriptions(client);
        self.stop_monitoring(client);
        self.sessions.remove(&client);
    }

    /// Asks a client's event loop to close its connection.
    pub(super) fn request_close(&self, session: &Session) {
        let to = session.address.slot;
        session.address.loop_queue.push(LoopMessage::Close { to }, self.lock_holder);
    }

    /// Runs one command of a client and writes its reply.
    pub(super) fn run(&mut self, client: ClientId, args: &[Bytes], reply: &mut Reply) -> Next {
        let Some(session) = self.sessions.get_mut(&client) else { return Next::Close };
        reply.set_protocol(session.protocol);
        session.active = Instant::now();
        let (start, before) = (reply.len(), self.position);
        self.set_clock();
        self.set_expiry_mode();
        let mut next = self.dispatch(client, args, reply);
        if next == Next::Hold {
            return next;
        }
        self.stats.commands += 1;
        if let (Recorded::No, Some(reason)) = (self.settle(), &self.lost) {
            // The command has changed the keyspace, and no record says so: it must not be acknowledged.
            reply.truncate(start);
            reply.error_bytes(misconf(reason).as_bytes());
            if next == Next::Block {
                self.unblock_client(client);
                next = Next::Go;
            }
        }
        if let Some(session) = self.sessions.get_mut(&client) {
            if self.position > before {
                session.written = self.position;
            }
            // A blocked command has no reply yet; `unblock_with_reply` obeys the mode.
            if session.reply_mode != ReplyMode::On && next != Next::Block {
                if !is_confirmation(args, &reply.as_bytes()[start..]) {
                    reply.truncate(start);
                }
                session.reply_mode = session.reply_mode.after_reply();
            }
        }
        next
    }

    fn dispatch(&mut self, client: ClientId, args: &[Bytes], reply: &mut Reply) -> Next {
        let Some(session) = self.sessions.get_mut(&client) else { return Next::Close };
        let checked = command::check(args).map_err(|error| error.text().to_vec());
        let permitted = checked.and_then(|command| match session.refusal(command, args) {
            Some(refusal) => Err(refusal.into_bytes()),
            None => Ok(command),
        });
        let command = match permitted {
            Ok(command) => command,
            Err(text) => {
                session.mark_transaction_aborted();
                session.note_refused(args);
                self.count_rejected(args);
                if args.first().is_some_and(|name| name.eq_ignore_ascii_case(b"EXEC")) {
                    self.abort_transaction(client, &text, reply);
                } else {
                    reply.error_bytes(&text);
                }
                return Next::Go;
            }
        };
        session.note_command(command, args);
        let queues = session.transaction.is_some() && !command.flags.has(NOT_QUEUED);
        self.began_full = self.memory.is_full();
        if self.began_full && (queues || self.needs_memory(client, command)) {
            return self.reject_for_memory(client, command, args, reply);
        }
        if command.flags.has(WRITE) {
            match self.write_gate() {
                // A write command must not meet a hidden key: it would go on with its old value.
                WriteGate::Open => self.db.set_expiry_mode(Expiry::Removes),
                WriteGate::Busy if queues => {}
                WriteGate::Busy => return Next::Hold,
                WriteGate::Refused(reason) => {
                    if let Some(session) = self.sessions.get_mut(&client) {
                        session.mark_transaction_aborted();
                    }
                    self.count_rejected(args);
                    reply.error_bytes(reason.as_bytes());
                    return Next::Go;
                }
            }
        }
        if queues {
            self.queue(client, command, args, reply);
            return Next::Go;
        }
        self.call(client, command, args, reply)
    }

    /// Counts a call that was refused; unknown commands are not counted.
    pub(super) fn count_rejected(&mut self, args: &[Bytes]) {
        let command = args.first().and_then(|name| command::find(name));
        if let Some(counted) = command.and_then(|command| self.calls.of(command, args)) {
            counted.rejected += 1;
        }
    }

    /// Runs a command that has passed all checks.
    pub(super) fn call(
        &mut self,
        client: ClientId,
        command: &'static Command,
        args: &[Bytes],
        reply: &mut Reply,
    ) -> Next {
        let (began, start) = (Instant::now(), reply.len());
        // A script is shown before its commands.
        let is_script = || command.name.starts_with("eval");
        if !self.monitors.is_empty() && is_script() {
            self.show_to_monitors(client, command, args);
        }
        let next = if command.flags.has(CONNECTION) {
            let next = self.connection_command(client, command, args, reply);
            let failed = reply.as_bytes().get(start) == Some(&b'-');
            let outcome = if failed { Outcome::Failed } else { Outcome::Done };
            if next != Next::Hold {
                self.calls.count(command, args, outcome);
            }
            next
        } else {
            self.keyspace_command(client, command, args, reply)
        };
        if !self.monitors.is_empty() && !is_script() && next != Next::Hold {
            self.show_to_monitors(client, command, args);
        }
        let spent = began.elapsed();
        if let Some(counted) = self.calls.of(command, args) {
            counted.spent += spent;
        }
        // The commands inside `EXEC` are logged one by one.
        if self.slowlog.is_slow(spent)
            && command.name != "exec"
            && let Some(session) = self.sessions.get(&client)
        {
            self.slowlog.note(spent, args, &session.peer, &session.name);
        }
        next
    }

    fn keyspace_command(
        &mut self,
        client: ClientId,
        command: &Command,
        args: &[Bytes],
        reply: &mut Reply,
    ) -> Next {
        let Some(session) = self.sessions.get_mut(&client) else { return Next::Close };
        if session.is_subscriber() && command.name == "ping" && args.len() <= 2 {
            reply.array(2);
            reply.bulk(b"pong");
            reply.bulk(args.get(1).map_or(&[], |text| text));
            return Next::Go;
        }
        self.db.select(session.db);
        self.db.set_blocking(self.blocking);
        let outcome = command::run(&mut self.db, command, args, reply);
        self.calls.count(command, args, outcome);
        session.db = self.db.selected();
        if command.flags.has(BLOCKING)
            && let Some(wait) = self.db.take_block_request()
        {
            self.block_client(client, wait);
            return Next::Block;
        }
        Next::Go
    }

    /// Whether a write command may run now.
    pub(super) fn write_gate(&self) -> WriteGate {
        if let Some(reason) = &self.lost {
            return WriteGate::Refused(misconf(reason));
        }
        match self.journal.as_ref().map_or(journal::State::Ready, Journal::state) {
            journal::State::Ready => WriteGate::Open,
            journal::State::Busy => WriteGate::Busy,
            journal::State::Refusing(reason) | journal::State::Failed(reason) => {
                WriteGate::Refused(misconf(&reason))
            }
        }
    }

    /// Ends a command, transaction or script: appends its effects, then serves other clients. Nobody is told of effects
    /// that were not recorded.
    fn settle(&mut self) -> Recorded {
        let recorded = self.commit();
        for client in self.counters.take_disconnected() {
            self.disconnect(client);
        }
        if recorded == Recorded::No {
            self.pubsub.discard_messages();
            // Their clients stay blocked: what they would get is not recorded, and no later write can follow.
            drop(self.db.take_ready());
        }
        if self.db.has_ready() {
            self.serve_ready();
        }
        self.post_messages();
        self.post_to_monitors();
        self.settled = self.position;
        recorded
    }

    /// The records that a message of the command being settled depends on. A message of a command that wrote counts as
    /// its write: it is never sent unrecorded. Any other message may reveal earlier records, as a read may.
    pub(super) fn message_depends_on(&self) -> DependsOn {
        let wrote = self.position > self.settled;
        let written = if wrote { self.position } else { Position::default() };
        DependsOn { written, seen: self.position }
    }

    /// Appends all effects since the last call to the journal, as one record.
    pub(super) fn commit(&mut self) -> Recorded {
        let effects = self.db.effects();
        if effects.is_empty() {
            return Recorded::Yes;
        }
        self.stats.changes += 1;
        let mut recorded = Recorded::Yes;
        if let Some(journal) = &mut self.journal {
            match journal.append(effects.as_bytes()) {
                Ok(position) => self.position = position,
                Err(error) => {
                    // The keyspace holds a write that the journal lacks, so later writes must not
                    // depend on it.
                    tracing::error!(%error, "a write was not recorded; all writes are refused until a restart");
                    self.lost.get_or_insert(error.to_string());
                    recorded = Recorded::No;
                }
            }
        }
        effects.clear();
        recorded
    }

    /// The error reply to a write that was not recorded.
    pub(super) fn not_recorded(&self) -> String {
        misconf(self.lost.as_deref().unwrap_or("a write was not recorded"))
    }

    /// Runs timers: timeouts of blocked clients, expiry, compaction. Returns the time until the
    /// next.
    pub(super) fn tick(&mut self) -> Option<Duration> {
        self.set_clock();
        self.set_expiry_mode();
        let now_ms = self.db.now_ms();
        if self.blocked.next_deadline_ms().is_some_and(|deadline| deadline <= now_ms) {
            self.time_out_blocked(now_ms);
        }
        self.serve_synced();
        let now = Instant::now();
        if now >= self.next_expiry {
            self.next_expiry = now + EXPIRY_PERIOD;
            let removed = self.db.expire_due(EXPIRED_AT_ONCE);
            self.stats.expired += removed as u64;
            if removed == EXPIRED_AT_ONCE {
                self.next_expiry = now;
            }
            self.stats.sample();
            self.compact_if_due();
        }
        self.settle();
        let wait = self.blocked.next_deadline_ms();
        let wait = wait.map(|deadline| Duration::from_millis((deadline - now_ms).max(0) as u64));
        let sync = self.blocked.waits_for_sync().then_some(SYNC_PAUSE);
        let expiry = self.db.next_expiry().map(|_| self.next_expiry.saturating_duration_since(now));
        [wait, sync, expiry].into_iter().flatten().min()
    }

    /// Whether `EXEC` is running commands.
    pub(super) fn in_transaction(&self) -> bool {
        self.blocking == Blocking::Denied
    }

    /// Keys whose time has passed are removed only while the journal takes their removal: a journal
    /// that refuses writes keeps all records in memory.
    fn set_expiry_mode(&mut self) {
        let is_open = self.write_gate() == WriteGate::Open;
        self.db.set_expiry_mode(if is_open { Expiry::Removes } else { Expiry::Hides });
    }

    fn set_clock(&mut self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.db.set_time_us(now.as_micros() as i64);
    }
}

/// Whether a reply confirms a subscription: `CLIENT REPLY` does not hide these.
fn is_confirmation(args: &[Bytes], reply: &[u8]) -> bool {
    let name = args.first().map(|name| name.to_ascii_lowercase()).unwrap_or_default();
    name.ends_with(b"subscribe") && matches!(reply.first(), Some(b'*' | b'>'))
}

fn misconf(reason: &str) -> String {
    format!("MISCONF Errors writing to the journal: {reason}. Reads still work.")
}

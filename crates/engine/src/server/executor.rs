//! The one place where commands run: keyspace, scripts, journal, and what is known of each client.
//!
//! Whoever has read a request takes the executor's lock and runs it here, so commands are serial and
//! never change threads (see `server.rs` for why). [`Executor::run`] is one command of one client, from
//! the checks that Redis makes, in its order, to the effects:
//!
//! ```text
//!   run ─▶ known? arity? password? subscriber? room on disk? ─▶ in MULTI: queue
//!            └▶ call ─▶ keyspace command (crate::command)  or  connection command (connection_commands.rs)
//!                 └▶ settle: effects → journal · waiting clients served · messages posted
//! ```
//!
//! It must not block: sockets belong to the event loops, the disk to the journal's threads.

mod connection_commands;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use super::OnShutdown;
use super::compaction::Compactor;
use super::mail::{Address, ClientId, Mail, Mailbox, Slot};
use super::pubsub::Pubsub;
use super::request::Trust;
use super::session::{ReplyMode, Session, Sessions};
use super::settings::Settings;
use super::shared::Counters;
use super::slowlog::Slowlog;
use super::stats::Stats;
use super::waiting::WaitingRoom;
use crate::command::{self, CONNECTION, Command, NOT_QUEUED, WAIT, WRITE};
use crate::db::{Db, Waiting};
use crate::journal::{self, Journal, Position};
use crate::lua::Scripts;
use crate::reply::Reply;

/// How many keys are expired at a time before clients are served again.
const EXPIRED_AT_ONCE: usize = 500;
/// How often due keys are looked for; nobody sees them in between.
const EXPIRY_PERIOD: Duration = Duration::from_millis(100);

/// What the event loop does with the client next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Its next command.
    Go,
    /// Nothing until mail says that it may resume.
    Wait,
    /// The same command again, when the journal has room.
    Hold,
    /// Send what was written and close.
    Close,
}

/// Whether the journal takes writes now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Gate {
    Open,
    /// In a moment.
    Busy,
    /// Not now; the text is the error to answer.
    Refused(String),
}

/// All state behind the lock.
pub(super) struct Executor {
    pub(super) db: Db,
    pub(super) scripts: Scripts,
    pub(super) sessions: Sessions,
    pub(super) waiting: WaitingRoom,
    pub(super) pubsub: Pubsub,
    pub(super) settings: Settings,
    pub(super) counters: Arc<Counters>,
    pub(super) slowlog: Slowlog,
    pub(super) stats: Stats,
    pub(super) journal: Option<Journal>,
    pub(super) compactor: Compactor,
    pub(super) on_shutdown: Option<OnShutdown>,
    /// The last record that was appended.
    pub(super) position: Position,
    /// The event loop whose thread holds the lock.
    pub(super) turn_of: Option<usize>,
    /// Whether commands may wait: not in a transaction.
    patience: Waiting,
    /// A record that the journal did not take; from then on there are no more writes.
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
            waiting: WaitingRoom::default(),
            pubsub: Pubsub::default(),
            slowlog: Slowlog::default(),
            stats: Stats::new(),
            settings,
            counters,
            journal,
            compactor: Compactor::default(),
            on_shutdown: None,
            position,
            turn_of: None,
            patience: Waiting::Allowed,
            lost: None,
            next_expiry: Instant::now(),
        }
    }

    /// Gets to know a client.
    pub(super) fn connect(
        &mut self,
        mailbox: &Arc<Mailbox>,
        slot: Slot,
        (peer, local): (String, String),
        trust: Trust,
    ) {
        self.stats.connections += 1;
        let address = Address { mailbox: mailbox.clone(), slot };
        let session = Session::new(address, peer, local, trust == Trust::Known);
        self.sessions.insert(slot.client, session);
    }

    /// Whether a client has given the password, if one is needed.
    pub(super) fn trust(&self, client: ClientId) -> Trust {
        let session = self.sessions.get(&client);
        if session.is_some_and(|one| one.authenticated) { Trust::Known } else { Trust::Stranger }
    }

    /// Forgets a client that has gone.
    pub(super) fn disconnect(&mut self, client: ClientId) {
        self.end_wait(client);
        self.unwatch(client);
        self.forget_subscriptions(client);
        self.sessions.remove(&client);
    }

    /// Asks a client's event loop to disconnect it.
    pub(super) fn kick(&self, session: &Session) {
        let to = session.address.slot;
        session.address.mailbox.post(Mail::Close { to }, self.turn_of);
    }

    /// Runs one command of a client and writes its reply.
    pub(super) fn run(&mut self, client: ClientId, args: &[Bytes], reply: &mut Reply) -> Next {
        let Some(session) = self.sessions.get_mut(&client) else { return Next::Close };
        reply.set_protocol(session.protocol);
        session.active = Instant::now();
        let start = reply.len();
        self.set_clock();
        let next = self.dispatch(client, args, reply);
        if next == Next::Hold {
            return next;
        }
        self.stats.commands += 1;
        self.settle();
        if let Some(session) = self.sessions.get_mut(&client)
            && session.reply_mode != ReplyMode::On
        {
            reply.truncate(start);
            session.reply_mode = match session.reply_mode {
                ReplyMode::SkipNext => ReplyMode::Skip,
                ReplyMode::Skip => ReplyMode::On,
                mode => mode,
            };
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
                session.spoil_transaction();
                session.note_refused(args);
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
        if command.flags.has(WRITE) {
            match self.gate() {
                Gate::Open => {}
                Gate::Busy if queues => {}
                Gate::Busy => return Next::Hold,
                Gate::Refused(reason) => {
                    if let Some(session) = self.sessions.get_mut(&client) {
                        session.spoil_transaction();
                    }
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

    /// Runs a command that was checked.
    pub(super) fn call(
        &mut self,
        client: ClientId,
        command: &'static Command,
        args: &[Bytes],
        reply: &mut Reply,
    ) -> Next {
        let began = Instant::now();
        let next = if command.flags.has(CONNECTION) {
            self.connection_command(client, command, args, reply)
        } else {
            self.keyspace_command(client, command, args, reply)
        };
        // `EXEC` is the sum of its parts, which are noted themselves.
        if command.name != "exec" {
            let spent = began.elapsed();
            if self.slowlog.is_slow(spent)
                && let Some(session) = self.sessions.get(&client)
            {
                self.slowlog.note(spent, args, &session.peer, &session.name);
            }
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
        self.db.set_waiting(self.patience);
        command::run(&mut self.db, command, args, reply);
        session.db = self.db.selected();
        if command.flags.has(WAIT)
            && let Some(wait) = self.db.take_wait()
        {
            self.begin_wait(client, wait);
            return Next::Wait;
        }
        Next::Go
    }

    /// May a command write now?
    pub(super) fn gate(&self) -> Gate {
        if let Some(reason) = &self.lost {
            return Gate::Refused(misconf(reason));
        }
        match self.journal.as_ref().map_or(journal::State::Ready, Journal::state) {
            journal::State::Ready => Gate::Open,
            journal::State::Busy => Gate::Busy,
            journal::State::Refusing(reason) | journal::State::Failed(reason) => {
                Gate::Refused(misconf(&reason))
            }
        }
    }

    /// Ends a command, transaction or script: its effects go to the journal and to others.
    fn settle(&mut self) {
        self.commit();
        for client in self.counters.take_gone() {
            self.disconnect(client);
        }
        if self.db.has_ready() {
            self.serve_ready();
        }
        self.post_messages();
    }

    /// Appends the effects since the last call to the journal, as one record.
    pub(super) fn commit(&mut self) {
        let effects = self.db.effects();
        if effects.is_empty() {
            return;
        }
        self.stats.changes += 1;
        if let Some(journal) = &mut self.journal {
            match journal.append(effects.as_bytes()) {
                Ok(position) => self.position = position,
                Err(error) => {
                    // The keyspace has it and the journal never will: nothing may build on it.
                    tracing::error!(%error, "a write was not recorded; there will be no more writes");
                    self.lost.get_or_insert(error.to_string());
                }
            }
        }
        effects.clear();
    }

    /// Does what is due by time; returns how long it can wait for the next time.
    pub(super) fn tick(&mut self) -> Option<Duration> {
        self.set_clock();
        let now_ms = self.db.now_ms();
        if self.waiting.next_deadline_ms().is_some_and(|deadline| deadline <= now_ms) {
            self.give_up_waits(now_ms);
        }
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
        let wait = self.waiting.next_deadline_ms();
        let wait = wait.map(|deadline| Duration::from_millis((deadline - now_ms).max(0) as u64));
        let expiry = self.db.next_expiry().map(|_| self.next_expiry.saturating_duration_since(now));
        [wait, expiry].into_iter().flatten().min()
    }

    /// Whether `EXEC` is running commands.
    pub(super) fn in_transaction(&self) -> bool {
        self.patience == Waiting::Denied
    }

    fn set_clock(&mut self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.db.set_time_us(now.as_micros() as i64);
    }
}

fn misconf(reason: &str) -> String {
    format!("MISCONF Errors writing to the journal: {reason}. Reads still work.")
}

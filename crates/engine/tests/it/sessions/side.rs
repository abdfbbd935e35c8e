//! One of the two servers with its clients, and how to know that a step is complete.
//!
//! A step is complete when every command was answered or is blocked. Whether a client is blocked is
//! asked over a separate connection (`CLIENT LIST`, flag `b`), so the result does not depend on the
//! speed of a server.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use stampede_engine::testing::DATABASES;
use stampede_engine::{Config, Server};

use super::client::Client;
use super::frame;
use super::step::{Action, ID_OF, Step};
use crate::redis;

/// If nothing has happened for this long, nothing will.
pub(crate) const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);
pub(crate) const POLL: Duration = Duration::from_micros(40);

pub(crate) struct Side {
    pub(crate) name: &'static str,
    port: u16,
    control: redis::Client,
    pub(crate) clients: Vec<Client>,
}

impl Side {
    /// Connects clients to a server and flushes it.
    pub(crate) fn new(
        name: &'static str,
        port: u16,
        clients: usize,
        password: Option<&str>,
    ) -> Self {
        let mut control = redis::Client::connect(port);
        if let Some(password) = password {
            control.call_all([words(&format!("AUTH {password}"))].iter());
        }
        // On a busy machine anything may be slow.
        let clean =
            ["CONFIG SET slowlog-log-slower-than -1", "FLUSHALL", "SCRIPT FLUSH", "SLOWLOG RESET"];
        control.call_all(clean.map(words).iter());
        let clients = (0..clients).map(|_| Client::connect(port)).collect();
        Self { name, port, control, clients }
    }

    /// Sends commands over the separate connection.
    pub(crate) fn ask(&mut self, commands: &[Vec<Vec<u8>>]) -> Vec<Vec<u8>> {
        self.control.call_all(commands.iter())
    }

    /// Reads all keys, so that the server expires those that are due.
    pub(crate) fn look_at_all_keys(&mut self) {
        for db in 0..DATABASES {
            self.ask(&[words(&format!("SELECT {db}")), super::keys_that_expire()]);
        }
        self.ask(&[words("SELECT 0")]);
    }

    /// Begins a step.
    pub(crate) fn begin(&mut self, step: &Step) {
        let ids: Vec<i64> = self.clients.iter().map(|client| client.id).collect();
        let client = &mut self.clients[step.client];
        client.send(step.commands(), |arg| match arg.strip_prefix(ID_OF) {
            Some(index) => {
                let index: usize = std::str::from_utf8(index).unwrap().parse().unwrap();
                ids[index % ids.len()].to_string().into_bytes()
            }
            None => arg.to_vec(),
        });
        match step.action {
            Action::SendAndHalfClose(_) => client.half_close(),
            Action::Close => client.close(),
            Action::Send(_) | Action::SendAndPause(_) => {}
        }
    }

    /// Waits until all commands are answered, except blocked ones.
    pub(crate) fn settle(&mut self) -> Result<(), String> {
        let mut deadline = Instant::now() + SETTLE_TIMEOUT;
        loop {
            let news = self.pump();
            let waits = |client: &&Client| !client.queue.is_empty();
            let (mut all, mut may_wait) = (0, 0);
            for client in self.clients.iter().filter(waits) {
                all += 1;
                may_wait += usize::from(client.queue[0].may_wait());
            }
            // The set of blocked clients may have changed: then replies have come meanwhile.
            if all == 0 || (all == may_wait && !news && self.all_wait() && !self.pump()) {
                return Ok(());
            }
            if Instant::now() > deadline {
                let stuck = self.clients.iter().position(|client| {
                    client.queue.front().is_some_and(|head| !head.may_wait() || all == may_wait)
                });
                let stuck = stuck.unwrap_or_default();
                return Err(format!(
                    "{} does not answer client {stuck}: {}",
                    self.name, self.clients[stuck].queue[0]
                ));
            }
            if news {
                deadline = Instant::now() + SETTLE_TIMEOUT;
            } else {
                std::thread::sleep(POLL);
            }
        }
    }

    /// Waits until a client's connection is closed.
    pub(crate) fn await_close(&mut self, index: usize) -> Result<(), String> {
        let id = self.clients[index].id;
        let gone = |side: &mut Self| side.clients[index].closed && !side.flags().contains_key(&id);
        let what = || format!("{} does not close the connection of client {index}", self.name);
        let text = what();
        self.until(gone).ok_or(text)
    }

    /// The number of replies of each client that were not compared yet.
    pub(crate) fn counts(&self) -> Vec<usize> {
        self.clients.iter().map(|client| client.inbox.len()).collect()
    }

    /// Reads available bytes; returns whether there were any.
    pub(crate) fn pump(&mut self) -> bool {
        let mut news = false;
        for client in &mut self.clients {
            news |= client.pump();
        }
        news
    }

    fn until(&mut self, mut done: impl FnMut(&mut Self) -> bool) -> Option<()> {
        let deadline = Instant::now() + SETTLE_TIMEOUT;
        loop {
            self.pump();
            if done(self) {
                return Some(());
            }
            if Instant::now() > deadline {
                return None;
            }
            std::thread::sleep(POLL);
        }
    }

    /// Closes all connections and waits until the server has noticed.
    pub(crate) fn leave(mut self) {
        self.clients.iter().for_each(Client::close);
        let ids: Vec<i64> = self.clients.iter().map(|client| client.id).collect();
        self.until(|side| {
            let flags = side.flags();
            ids.iter().all(|id| !flags.contains_key(id))
        });
    }

    pub(crate) fn reconnect(&mut self, index: usize) {
        self.clients[index] = Client::connect(self.port);
    }

    /// Whether all unanswered clients are blocked.
    fn all_wait(&mut self) -> bool {
        let flags = self.flags();
        let waits = |id: i64| flags.get(&id).is_some_and(|flags| flags.contains('b'));
        self.clients.iter().all(|client| client.queue.is_empty() || waits(client.id))
    }

    /// The flags of all clients, by client id.
    fn flags(&mut self) -> BTreeMap<i64, String> {
        let reply = self.ask(&[words("CLIENT LIST")]).remove(0);
        let lines = String::from_utf8_lossy(frame::text(&reply)).into_owned();
        lines
            .lines()
            .filter_map(|line| {
                Some((number(field(line, "id")?)?, field(line, "flags")?.to_owned()))
            })
            .collect()
    }
}

pub(crate) fn words(line: &str) -> Vec<Vec<u8>> {
    line.split(' ').map(|arg| arg.as_bytes().to_vec()).collect()
}

/// A field of a line of `CLIENT LIST`.
pub(crate) fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split(' ').find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
}

fn number(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// Starts an engine with its journal in a folder.
pub(crate) fn start_engine(folder: &Path, password: Option<&str>) -> Server {
    let config = Config {
        tcp: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))],
        dir: Some(folder.to_owned()),
        password: password.map(str::to_owned),
        ..Config::default()
    };
    Server::start(config).unwrap_or_else(|error| panic!("the engine does not start: {error}"))
}

pub(crate) fn port_of(engine: &Server) -> u16 {
    engine.tcp_addr().map(|address| address.port()).unwrap()
}

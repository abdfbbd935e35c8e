//! A connection to either server, with as much client state as is needed to assign replies to
//! commands.
//!
//! A command has one reply, with exceptions: subscribing has one per channel, messages come without
//! a request, a blocked command is answered later, and `CLIENT REPLY` suppresses some replies. So
//! replies are taken off the stream in order, each with its [`Context`], which the comparison rules
//! need.

use std::collections::{BTreeSet, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::frame;
use super::step::{Command, word};

/// The origin of a reply: a command or a message.
#[derive(Debug, Clone)]
pub(crate) enum Context {
    /// A pub/sub message.
    Message,
    /// A command; `queued` are the commands that an `EXEC` runs.
    Reply { command: Rc<Command>, queued: Vec<Rc<Command>> },
}

impl Context {
    /// The name of the command, for messages and for grouping differences.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Message => "a message".to_owned(),
            Self::Reply { command, .. } => command.name(),
        }
    }
}

pub(crate) struct Client {
    stream: TcpStream,
    /// The client id that the server assigned.
    pub(crate) id: i64,
    bytes: Vec<u8>,
    /// Commands sent and not answered yet.
    pub(crate) queue: VecDeque<Rc<Command>>,
    /// The number of replies that the first of these has got.
    got: usize,
    pub(crate) inbox: VecDeque<(Vec<u8>, Context)>,
    pub(crate) closed: bool,
    multi: Option<Vec<Rc<Command>>>,
    channels: BTreeSet<Vec<u8>>,
    patterns: BTreeSet<Vec<u8>>,
}

impl Client {
    pub(crate) fn connect(port: u16) -> Self {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut client = Self {
            stream,
            id: 0,
            bytes: Vec::new(),
            queue: VecDeque::new(),
            got: 0,
            inbox: VecDeque::new(),
            closed: false,
            multi: None,
            channels: BTreeSet::new(),
            patterns: BTreeSet::new(),
        };
        client.send(&[Rc::new(Command::words("CLIENT ID"))], |arg| arg.to_vec());
        let deadline = Instant::now() + Duration::from_secs(20);
        while client.inbox.is_empty() {
            assert!(!client.closed && Instant::now() < deadline, "a new client is not answered");
            std::thread::sleep(Duration::from_micros(50));
            client.pump();
        }
        let (reply, _) = client.inbox.pop_front().unwrap();
        // A server with a password does not tell the id.
        client.id = std::str::from_utf8(frame::text(&reply)).unwrap().parse().unwrap_or(-1);
        client
    }

    /// Sends commands in one batch; `own` replaces placeholders of client ids.
    pub(crate) fn send(&mut self, commands: &[Rc<Command>], own: impl Fn(&[u8]) -> Vec<u8>) {
        let mut bytes = Vec::new();
        for command in commands {
            match &command.raw {
                Some(raw) => bytes.extend_from_slice(raw),
                None => {
                    write!(bytes, "*{}\r\n", command.args.len()).unwrap();
                    for arg in &command.args {
                        let arg = own(arg);
                        write!(bytes, "${}\r\n", arg.len()).unwrap();
                        bytes.extend_from_slice(&arg);
                        bytes.extend_from_slice(b"\r\n");
                    }
                }
            }
            self.queue.push_back(command.clone());
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() && !self.closed {
            match self.stream.write(rest) {
                Ok(written) => rest = &rest[written..],
                // The server may wait for us to read.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.pump();
                    std::thread::sleep(Duration::from_micros(50));
                }
                Err(_) => break,
            }
        }
    }

    pub(crate) fn half_close(&self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    pub(crate) fn close(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Reads available bytes; returns whether there were any.
    pub(crate) fn pump(&mut self) -> bool {
        let (mut news, mut buffer) = (false, [0; 16 << 10]);
        while !self.closed {
            match self.stream.read(&mut buffer) {
                Ok(0) => self.closed = true,
                Ok(count) => self.bytes.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => self.closed = true,
            }
            news = true;
        }
        let mut at = 0;
        while let Some(len) = frame::len(&self.bytes[at..]) {
            let reply = self.bytes[at..at + len].to_vec();
            at += len;
            self.take(reply);
        }
        self.bytes.drain(..at);
        self.skip_silent();
        if self.closed {
            self.queue.clear();
        }
        news
    }

    /// Removes commands without a reply from the front of the queue.
    fn skip_silent(&mut self) {
        while self.queue.front().is_some_and(|head| self.replies_to(head) == 0) {
            self.queue.pop_front();
        }
    }

    /// Whether replies could no longer be assigned to commands. Subscriptions in a transaction
    /// produce more replies than `EXEC` announces. In Redis 7.0 so does a message that a client
    /// sends to itself in one. Raw bytes may be several commands.
    pub(crate) fn would_lose_count(&self, commands: &[Rc<Command>]) -> bool {
        let any = |wanted: &dyn Fn(&str) -> bool| commands.iter().any(|one| wanted(&one.name()));
        let in_the_middle = self.multi.is_some() || !self.queue.is_empty();
        let subscribed = self.channels.len() + self.patterns.len() > 0;
        let begins = any(&|name| name == "MULTI");
        (in_the_middle && any(&|name| name.ends_with("SUBSCRIBE") || name == "(raw)"))
            || (subscribed
                && (in_the_middle || begins)
                && any(&|name| name == "PUBLISH" || name.starts_with("EVAL")))
    }

    /// Whether the client will kill another client when it continues.
    pub(crate) fn is_about_to_kill(&self) -> bool {
        let kills = |command: &Rc<Command>| {
            command.args.get(1).is_some_and(|word| word.eq_ignore_ascii_case(b"KILL"))
        };
        self.queue.iter().any(kills)
    }

    /// The number of replies that a command gets now.
    fn replies_to(&self, command: &Command) -> usize {
        if let Some(replies) = command.replies {
            return replies;
        }
        if self.multi.is_some() {
            return 1;
        }
        let own = |all: &BTreeSet<Vec<u8>>| match command.args.len() {
            1 => all.len().max(1),
            count => count - 1,
        };
        match command.name().as_str() {
            // Without names the command is an error.
            "SUBSCRIBE" | "PSUBSCRIBE" => (command.args.len() - 1).max(1),
            "UNSUBSCRIBE" => own(&self.channels),
            "PUNSUBSCRIBE" => own(&self.patterns),
            _ => 1,
        }
    }

    /// Assigns a reply to its command.
    fn take(&mut self, reply: Vec<u8>) {
        if is_message(&reply) {
            return self.inbox.push_back((reply, Context::Message));
        }
        self.skip_silent();
        let Some(command) = self.queue.front().cloned() else {
            let command = Rc::new(Command::words("(nothing)"));
            return self.inbox.push_back((reply, Context::Reply { command, queued: Vec::new() }));
        };
        self.got += 1;
        let queued = if command.name() == "EXEC" { self.multi.clone() } else { None };
        let failed = reply[0] == b'-';
        let last = failed || self.got >= self.replies_to(&command);
        if last {
            self.got = 0;
            self.queue.pop_front();
            self.note(&command, &reply);
        }
        let queued = queued.unwrap_or_default();
        self.inbox.push_back((reply, Context::Reply { command, queued }));
    }

    /// Updates the client's state after an answered command.
    fn note(&mut self, command: &Rc<Command>, reply: &[u8]) {
        if let Some(queued) = &mut self.multi
            && reply == b"+QUEUED\r\n"
        {
            return queued.push(command.clone());
        }
        let names = || command.args[1..].iter().cloned();
        match command.name().as_str() {
            "EXEC" | "DISCARD" if command.args.len() == 1 => self.multi = None,
            "RESET" if reply == b"+RESET\r\n" => {
                self.multi = None;
                self.channels.clear();
                self.patterns.clear();
            }
            "MULTI" if reply == b"+OK\r\n" => self.multi = Some(Vec::new()),
            _ if reply[0] == b'-' => {}
            "SUBSCRIBE" => self.channels.extend(names()),
            "PSUBSCRIBE" => self.patterns.extend(names()),
            "UNSUBSCRIBE" if command.args.len() == 1 => self.channels.clear(),
            "PUNSUBSCRIBE" if command.args.len() == 1 => self.patterns.clear(),
            "UNSUBSCRIBE" => self.channels.retain(|own| !names().any(|name| name == *own)),
            "PUNSUBSCRIBE" => self.patterns.retain(|own| !names().any(|name| name == *own)),
            _ => {}
        }
    }
}

fn is_message(reply: &[u8]) -> bool {
    matches!(reply[0], b'*' | b'>')
        && frame::items(reply)
            .and_then(|items| items.first().map(|first| word(frame::text(first))))
            .is_some_and(|kind| kind == "MESSAGE" || kind == "PMESSAGE")
}

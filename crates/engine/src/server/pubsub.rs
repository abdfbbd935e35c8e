//! Pub/sub: subscriptions to channels and patterns, and messages to subscribers.
//!
//! Messages are collected while a command runs, because a script or transaction may publish many. They
//! are sent to the subscribers' loops when the command has ended. A message is not stored for clients
//! that subscribe later.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;

use super::event_loop::MAX_MESSAGE_BYTES;
use super::executor::Executor;
use super::loop_queue::{ClientId, LoopMessage, SendKind};
use crate::blob::Blob;
use crate::error::{self, Result};
use crate::glob;
use crate::reply::{Protocol, Reply};

/// Subscriptions, and published messages that are not sent yet.
#[derive(Debug, Default)]
pub(super) struct Pubsub {
    channels: BTreeMap<Blob, Vec<ClientId>>,
    patterns: BTreeMap<Blob, Vec<ClientId>>,
    outgoing: Vec<Message>,
    /// The total size of those messages for each subscriber.
    outgoing_bytes: HashMap<ClientId, usize>,
}

#[derive(Debug)]
struct Message {
    to: ClientId,
    pattern: Option<Blob>,
    channel: Blob,
    text: Bytes,
}

impl Pubsub {
    /// Publishes a message; returns the number of receivers.
    pub(super) fn publish(&mut self, channel: &[u8], text: &[u8]) -> usize {
        let text = Bytes::copy_from_slice(text);
        let mut heard = 0;
        let mut send = |to: &ClientId, pattern: Option<&Blob>| {
            heard += 1;
            let bytes = self.outgoing_bytes.entry(*to).or_default();
            *bytes += channel.len() + text.len();
            // The subscriber exceeds the limit of unread messages and will be disconnected instead.
            if *bytes > MAX_MESSAGE_BYTES {
                return;
            }
            self.outgoing.push(Message {
                to: *to,
                pattern: pattern.cloned(),
                channel: Blob::new(channel),
                text: text.clone(),
            });
        };
        for client in self.channels.get(channel).into_iter().flatten() {
            send(client, None);
        }
        for (pattern, clients) in &self.patterns {
            if glob::matches(pattern, channel) {
                clients.iter().for_each(|client| send(client, Some(pattern)));
            }
        }
        heard
    }

    /// Drops the messages that are not sent yet.
    pub(super) fn discard_messages(&mut self) {
        self.outgoing.clear();
        self.outgoing_bytes.clear();
    }

    /// `PUBSUB` and its subcommands.
    pub(super) fn command(&self, args: &[Bytes], reply: &mut Reply) -> Result {
        match (args[1].to_ascii_uppercase().as_slice(), &args[2..]) {
            (b"CHANNELS", pattern @ ([] | [_])) => {
                let wanted = |name: &&Blob| pattern.first().is_none_or(|p| glob::matches(p, name));
                let names: Vec<&Blob> = self.channels.keys().filter(wanted).collect();
                reply.array(names.len());
                names.into_iter().for_each(|name| reply.bulk(name));
            }
            (b"NUMSUB", names) => {
                reply.array(names.len() * 2);
                for name in names {
                    reply.bulk(name);
                    reply.int(self.channels.get(&**name).map_or(0, Vec::len) as i64);
                }
            }
            (b"NUMPAT", []) => reply.int(self.patterns.len() as i64),
            (b"SHARDCHANNELS", [] | [_]) => reply.array(0),
            (b"SHARDNUMSUB", names) => {
                reply.array(names.len() * 2);
                for name in names {
                    reply.bulk(name);
                    reply.int(0);
                }
            }
            _ => return Err(error::subcommand_syntax("pubsub", &args[1])),
        }
        Ok(())
    }

    /// The number of channels and patterns with subscribers.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.channels.len(), self.patterns.len())
    }

    fn of(&mut self, kind: Kind) -> &mut BTreeMap<Blob, Vec<ClientId>> {
        match kind {
            Kind::Channel => &mut self.channels,
            Kind::Pattern => &mut self.patterns,
        }
    }

    fn remove(&mut self, kind: Kind, name: &Blob, client: ClientId) {
        let all = self.of(kind);
        if let Some(clients) = all.get_mut(name) {
            clients.retain(|other| *other != client);
            if clients.is_empty() {
                all.remove(name);
            }
        }
    }
}

/// Whether a subscription names a channel or a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Channel,
    Pattern,
}

impl Kind {
    fn words(self) -> (&'static [u8], &'static [u8]) {
        match self {
            Self::Channel => (b"subscribe", b"unsubscribe"),
            Self::Pattern => (b"psubscribe", b"punsubscribe"),
        }
    }
}

impl Executor {
    /// `SUBSCRIBE` and `PSUBSCRIBE`.
    pub(super) fn subscribe(
        &mut self,
        client: ClientId,
        kind: Kind,
        names: &[Bytes],
        reply: &mut Reply,
    ) {
        let Some(session) = self.sessions.get_mut(&client) else { return };
        for name in names {
            let name = Blob::new(name);
            let own = match kind {
                Kind::Channel => &mut session.channels,
                Kind::Pattern => &mut session.patterns,
            };
            if own.insert(name.clone()) {
                self.pubsub.of(kind).entry(name.clone()).or_default().push(client);
            }
            reply.push(3);
            reply.bulk(kind.words().0);
            reply.bulk(&name);
            reply.int(session.subscriptions() as i64);
        }
    }

    /// `UNSUBSCRIBE` and `PUNSUBSCRIBE`; without names, removes all subscriptions of that kind.
    pub(super) fn unsubscribe(
        &mut self,
        client: ClientId,
        kind: Kind,
        names: &[Bytes],
        reply: &mut Reply,
    ) {
        let Some(session) = self.sessions.get_mut(&client) else { return };
        let own = match kind {
            Kind::Channel => &session.channels,
            Kind::Pattern => &session.patterns,
        };
        let names: Vec<Blob> = match names {
            [] => own.iter().cloned().collect(),
            names => names.iter().map(|name| Blob::new(name)).collect(),
        };
        let word = kind.words().1;
        if names.is_empty() {
            reply.push(3);
            reply.bulk(word);
            reply.nil();
            reply.int(session.subscriptions() as i64);
        }
        for name in names {
            let own = match kind {
                Kind::Channel => &mut session.channels,
                Kind::Pattern => &mut session.patterns,
            };
            own.remove(&name);
            self.pubsub.remove(kind, &name, client);
            reply.push(3);
            reply.bulk(word);
            reply.bulk(&name);
            reply.int(session.subscriptions() as i64);
        }
    }

    /// Removes all subscriptions of a client.
    pub(super) fn forget_subscriptions(&mut self, client: ClientId) {
        let Some(session) = self.sessions.get_mut(&client) else { return };
        for name in std::mem::take(&mut session.channels) {
            self.pubsub.remove(Kind::Channel, &name, client);
        }
        for name in std::mem::take(&mut session.patterns) {
            self.pubsub.remove(Kind::Pattern, &name, client);
        }
    }

    /// Sends the messages that the last command published to the subscribers' loops.
    pub(super) fn post_messages(&mut self) {
        if self.pubsub.outgoing_bytes.is_empty() {
            return;
        }
        let bytes = std::mem::take(&mut self.pubsub.outgoing_bytes);
        let depends_on = self.message_depends_on();
        for (client, _) in bytes.iter().filter(|(_, bytes)| **bytes > MAX_MESSAGE_BYTES) {
            if let Some(session) = self.sessions.get(client) {
                tracing::warn!(client, "a subscriber was disconnected: too many messages at once");
                self.request_close(session);
            }
        }
        for message in self.pubsub.outgoing.drain(..) {
            let Some(session) = self.sessions.get(&message.to) else { continue };
            if bytes.get(&message.to).is_some_and(|bytes| *bytes > MAX_MESSAGE_BYTES) {
                continue;
            }
            let bytes = message.encode(session.protocol);
            let to = session.address.slot;
            let message = LoopMessage::Send { to, bytes, depends_on, kind: SendKind::PubSub };
            session.address.loop_queue.push(message, self.lock_holder);
        }
    }
}

impl Message {
    fn encode(&self, protocol: Protocol) -> Bytes {
        let mut reply = Reply::new(protocol);
        match &self.pattern {
            Some(pattern) => {
                reply.push(4);
                reply.bulk(b"pmessage");
                reply.bulk(pattern);
            }
            None => {
                reply.push(3);
                reply.bulk(b"message");
            }
        }
        reply.bulk(&self.channel);
        reply.bulk(&self.text);
        reply.take().freeze()
    }
}

//! `AUTH`, `HELLO` and `CLIENT`: authentication, protocol version, and the list of clients.

use bytes::Bytes;

use super::executor::{Executor, Next};
use super::loop_queue::ClientId;
use super::session::{ReplyMode, Session};
use crate::blob::Blob;
use crate::error::{self, Error, Result, SYNTAX};
use crate::number::parse_int;
use crate::reply::{Protocol, Reply};

const WRONG_PASSWORD: Error =
    Error::Fixed("WRONGPASS invalid username-password pair or user is disabled.");
const NO_PASSWORD: Error = Error::Fixed(
    "ERR AUTH <password> called without any password configured for the default user. Are you sure \
     your configuration is correct?",
);
const HELLO_FIRST: Error = Error::Fixed(
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH \
     <user> <pass> option can be used to authenticate the client and select the RESP protocol \
     version at the same time",
);
const BAD_NAME: Error =
    Error::Fixed("ERR Client names cannot contain spaces, newlines or special characters.");

impl Executor {
    pub(super) fn auth(&mut self, client: ClientId, args: &[Bytes], reply: &mut Reply) -> Result {
        match &args[1..] {
            [_] if self.settings.password.is_none() => return Err(NO_PASSWORD),
            [password] => self.log_in(client, b"default", password)?,
            [user, password] => self.log_in(client, user, password)?,
            _ => return Err(SYNTAX),
        }
        reply.ok();
        Ok(())
    }

    fn log_in(&mut self, client: ClientId, user: &[u8], password: &[u8]) -> Result {
        let known = user == b"default";
        // Without a configured password, every password is accepted, as for Redis's default user.
        let right =
            self.settings.password.as_ref().is_none_or(|own| same(own.as_bytes(), password));
        if !(known && right) {
            return Err(WRONG_PASSWORD);
        }
        if let Some(session) = self.sessions.get_mut(&client) {
            session.authenticated = true;
        }
        Ok(())
    }

    fn set_name(&mut self, client: ClientId, name: &[u8]) -> Result {
        let name = valid_name(name)?;
        if let Some(session) = self.sessions.get_mut(&client) {
            session.name = name;
        }
        Ok(())
    }

    pub(super) fn hello(&mut self, client: ClientId, args: &[Bytes], reply: &mut Reply) -> Result {
        let protocol = match args.get(1).map(|text| parse_int(text)) {
            None => None,
            Some(Some(2)) => Some(Protocol::Resp2),
            Some(Some(3)) => Some(Protocol::Resp3),
            Some(Some(_)) => return Err(Error::Fixed("NOPROTO unsupported protocol version")),
            Some(None) => {
                return Err(Error::Fixed("ERR Protocol version is not an integer or out of range"));
            }
        };
        let mut options = args.get(2..).unwrap_or_default();
        // Each option takes effect at once, even if a later option is wrong.
        loop {
            options = match options {
                [] => break,
                [word, user, password, rest @ ..] if word.eq_ignore_ascii_case(b"AUTH") => {
                    self.log_in(client, user, password)?;
                    rest
                }
                [word, text, rest @ ..] if word.eq_ignore_ascii_case(b"SETNAME") => {
                    self.set_name(client, text)?;
                    rest
                }
                [word, ..] => {
                    let word = String::from_utf8_lossy(word);
                    return Err(Error::quoting(format!(
                        "ERR Syntax error in HELLO option '{word}'"
                    )));
                }
            };
        }
        let Some(session) = self.sessions.get_mut(&client) else { return Ok(()) };
        if !session.authenticated {
            return Err(HELLO_FIRST);
        }
        session.protocol = protocol.unwrap_or(session.protocol);
        reply.set_protocol(session.protocol);
        reply.map(7);
        for (name, value) in [("server", "redis"), ("version", super::VERSION)] {
            reply.bulk(name.as_bytes());
            reply.bulk(value.as_bytes());
        }
        reply.bulk(b"proto");
        reply.int(if session.protocol == Protocol::Resp3 { 3 } else { 2 });
        reply.bulk(b"id");
        reply.int(session.id as i64);
        for (name, value) in [("mode", "standalone"), ("role", "master")] {
            reply.bulk(name.as_bytes());
            reply.bulk(value.as_bytes());
        }
        reply.bulk(b"modules");
        reply.array(0);
        Ok(())
    }

    /// `CLIENT` and its subcommands.
    pub(super) fn client_command(
        &mut self,
        client: ClientId,
        args: &[Bytes],
        reply: &mut Reply,
    ) -> Result<Next> {
        let Some(session) = self.sessions.get_mut(&client) else { return Ok(Next::Close) };
        let subcommand = args[1].to_ascii_uppercase();
        match (subcommand.as_slice(), &args[2..]) {
            (b"ID", []) => reply.int(session.id as i64),
            (b"GETNAME", []) if session.name.is_empty() => reply.nil(),
            (b"GETNAME", []) => reply.bulk(&session.name),
            (b"SETNAME", [name]) => {
                session.name = valid_name(name)?;
                reply.ok();
            }
            (b"SETINFO", [attribute, text]) => {
                let text = valid_attribute(attribute, text)?;
                match attribute.to_ascii_lowercase().as_slice() {
                    b"lib-name" => session.library.0 = text,
                    b"lib-ver" => session.library.1 = text,
                    _ => {
                        let name = String::from_utf8_lossy(attribute);
                        return Err(Error::quoting(format!("ERR Unrecognized option '{name}'")));
                    }
                }
                reply.ok();
            }
            (b"INFO", []) => reply.verbatim(&format!("{}\n", session.describe(&self.db))),
            (b"LIST", filter) => self.client_list(filter, reply)?,
            (b"KILL", filter @ [_, ..]) => return self.client_kill(client, filter, reply),
            (b"REPLY", [mode]) => {
                session.reply_mode = match mode.to_ascii_uppercase().as_slice() {
                    b"ON" => ReplyMode::On,
                    b"OFF" => ReplyMode::Off,
                    b"SKIP" => ReplyMode::SkipNext,
                    _ => return Err(SYNTAX),
                };
                if session.reply_mode == ReplyMode::On {
                    reply.ok();
                }
            }
            (b"UNBLOCK", [id, rest @ ..]) if rest.len() < 2 => {
                self.client_unblock(id, rest, reply)?;
            }
            (b"NO-EVICT" | b"NO-TOUCH", [mode])
                if mode.eq_ignore_ascii_case(b"on") || mode.eq_ignore_ascii_case(b"off") =>
            {
                reply.ok();
            }
            (b"GETREDIR", []) => reply.int(-1),
            (b"NO-EVICT" | b"NO-TOUCH", _) => return Err(SYNTAX),
            // `subcommands.rs` has already checked names and argument counts.
            _ => return Err(error::subcommand_syntax("client", &args[1])),
        }
        Ok(Next::Go)
    }

    fn client_list(&self, filter: &[Bytes], reply: &mut Reply) -> Result {
        let mut sessions: Vec<&Session> = match filter {
            [] => self.sessions.values().collect(),
            [word, kind] if word.eq_ignore_ascii_case(b"TYPE") => {
                let kind = kind.to_ascii_lowercase();
                let wanted = |session: &&Session| match kind.as_slice() {
                    b"normal" => session.subscriptions() == 0,
                    b"pubsub" => session.subscriptions() > 0,
                    _ => false,
                };
                known_type(&kind)?;
                self.sessions.values().filter(wanted).collect()
            }
            [word, ids @ ..] if word.eq_ignore_ascii_case(b"ID") && !ids.is_empty() => {
                let mut found = Vec::new();
                for id in ids {
                    let id = parse_int(id).ok_or(Error::Fixed("ERR Invalid client ID"))?;
                    found.extend(self.sessions.get(&(id as u64)));
                }
                found
            }
            _ => return Err(SYNTAX),
        };
        sessions.sort_by_key(|session| session.id);
        let lines: String = sessions.iter().map(|one| one.describe(&self.db) + "\n").collect();
        reply.verbatim(&lines);
        Ok(())
    }

    fn client_kill(
        &mut self,
        client: ClientId,
        filter: &[Bytes],
        reply: &mut Reply,
    ) -> Result<Next> {
        let mut filters = Vec::new();
        let (mut skip_me, old_form) = (true, filter.len() == 1);
        match filter {
            [peer] => {
                skip_me = false;
                filters.push((b"ADDR".to_vec(), peer.clone()));
            }
            filter if filter.len() % 2 == 0 => {
                for pair in filter.chunks(2) {
                    let (name, value) = (pair[0].to_ascii_uppercase(), pair[1].clone());
                    match name.as_slice() {
                        b"SKIPME" if value.eq_ignore_ascii_case(b"yes") => skip_me = true,
                        b"SKIPME" if value.eq_ignore_ascii_case(b"no") => skip_me = false,
                        b"TYPE" => {
                            known_type(&value)?;
                            filters.push((name, value));
                        }
                        b"USER" if &*value != b"default" => {
                            let user = String::from_utf8_lossy(&value);
                            return Err(Error::quoting(format!("ERR No such user '{user}'")));
                        }
                        b"ID" if parse_int(&value).is_none_or(|id| id <= 0) => {
                            return Err(Error::Fixed("ERR client-id should be greater than 0"));
                        }
                        b"ID" | b"ADDR" | b"LADDR" | b"USER" | b"NAME" => {
                            filters.push((name, value));
                        }
                        _ => return Err(SYNTAX),
                    }
                }
            }
            _ => return Err(SYNTAX),
        }
        let matches = |session: &Session| {
            filters.iter().all(|(name, value)| match name.as_slice() {
                b"ID" => parse_int(value) == Some(session.id as i64),
                b"ADDR" => session.peer.as_bytes() == &**value,
                b"LADDR" => session.local.as_bytes() == &**value,
                b"NAME" => *session.name == **value,
                b"USER" => &**value == b"default",
                _ => value.eq_ignore_ascii_case(if session.subscriptions() > 0 {
                    b"pubsub"
                } else {
                    b"normal"
                }),
            })
        };
        let found: Vec<ClientId> = self
            .sessions
            .values()
            .filter(|session| matches(session) && !(skip_me && session.id == client))
            .map(|session| session.id)
            .collect();
        for id in &found {
            if *id != client
                && let Some(session) = self.sessions.get(id)
            {
                self.request_close(session);
                // The session ends now, so that the client runs nothing before its loop reads the
                // message.
                self.disconnect(*id);
            }
        }
        match (old_form, found.len()) {
            (true, 0) => return Err(Error::Fixed("ERR No such client")),
            (true, _) => reply.ok(),
            (false, count) => reply.int(count as i64),
        }
        Ok(if found.contains(&client) { Next::Close } else { Next::Go })
    }

    fn client_unblock(&mut self, id: &[u8], rest: &[Bytes], reply: &mut Reply) -> Result {
        let id = parse_int(id).ok_or(error::NOT_INTEGER)? as ClientId;
        let with_error = match rest {
            [] => false,
            [word] if word.eq_ignore_ascii_case(b"TIMEOUT") => false,
            [word] if word.eq_ignore_ascii_case(b"ERROR") => true,
            _ => {
                return Err(Error::Fixed("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"));
            }
        };
        let unblocked = self.unblock_with(id, |answer| {
            if with_error {
                answer.error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
            } else {
                answer.nil_array();
            }
        });
        reply.int(unblocked.into());
        Ok(())
    }
}

/// Compares in constant time, so that timing does not reveal how much of the password matched.
pub(super) fn same(own: &[u8], given: &[u8]) -> bool {
    let difference = own.iter().zip(given).fold(0, |all, (own, given)| all | (own ^ given));
    own.len() == given.len() && difference == 0
}

fn known_type(kind: &[u8]) -> Result {
    let known = ["normal", "pubsub", "master", "replica", "slave"];
    if known.iter().any(|name| kind.eq_ignore_ascii_case(name.as_bytes())) {
        return Ok(());
    }
    let kind = String::from_utf8_lossy(kind);
    Err(Error::quoting(format!("ERR Unknown client type '{kind}'")))
}

fn is_plain(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_graphic)
}

fn valid_name(name: &[u8]) -> Result<Blob> {
    if is_plain(name) { Ok(Blob::new(name)) } else { Err(BAD_NAME) }
}

fn valid_attribute(attribute: &[u8], text: &[u8]) -> Result<Blob> {
    if is_plain(text) {
        return Ok(Blob::new(text));
    }
    let name = String::from_utf8_lossy(attribute);
    Err(Error::quoting(format!(
        "ERR {name} cannot contain spaces, newlines or special characters."
    )))
}

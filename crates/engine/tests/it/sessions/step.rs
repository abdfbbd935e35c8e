//! The steps of a session, and their text form.

use std::fmt;
use std::rc::Rc;

/// A placeholder argument for the client id that a server assigned to a client.
pub(crate) const ID_OF: &[u8] = b"\x01id-of-client-";

/// One command of one client.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Command {
    pub(crate) args: Vec<Vec<u8>>,
    /// Bytes sent instead of the arguments.
    pub(crate) raw: Option<Vec<u8>>,
    /// The number of replies, if the command's name does not determine it.
    pub(crate) replies: Option<usize>,
}

impl Command {
    pub(crate) fn new(args: Vec<Vec<u8>>) -> Self {
        Self { args, ..Self::default() }
    }

    /// A command of words without spaces.
    pub(crate) fn words(line: &str) -> Self {
        Self::new(line.split(' ').map(|arg| arg.as_bytes().to_vec()).collect())
    }

    /// Sets the number of replies.
    pub(crate) fn with_replies(self, replies: usize) -> Self {
        Self { replies: Some(replies), ..self }
    }

    /// The name in upper case, with its subcommand if it has one.
    pub(crate) fn name(&self) -> String {
        let Some(name) = self.args.first() else { return "(raw)".to_owned() };
        word(name)
    }

    /// Whether the command may block forever.
    pub(crate) fn may_wait(&self) -> bool {
        let last = self.args.last().is_some_and(|arg| arg == b"0");
        match self.name().as_str() {
            "BLPOP" | "BRPOP" | "BLMOVE" | "BRPOPLPUSH" | "BZPOPMIN" | "BZPOPMAX" => last,
            "BLMPOP" | "BZMPOP" => self.args.get(1).is_some_and(|arg| arg == b"0"),
            "XREAD" | "XREADGROUP" => {
                self.args.windows(2).any(|pair| word(&pair[0]) == "BLOCK" && pair[1] == b"0")
            }
            _ => false,
        }
    }
}

/// A word in upper case.
pub(crate) fn word(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).to_uppercase()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Sends commands in one batch.
    Send(Vec<Rc<Command>>),
    /// Sends commands and closes the writing half at once.
    SendAndHalfClose(Vec<Rc<Command>>),
    /// Sends commands and waits until keys have expired.
    SendAndPause(Vec<Rc<Command>>),
    Close,
}

/// A step of one client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) client: usize,
    pub(crate) action: Action,
    /// Whether the step also runs while the client is blocked.
    pub(crate) while_waiting: bool,
}

impl Step {
    /// Whether the step ends the connection, regardless of the commands.
    pub(crate) fn closes(&self) -> bool {
        matches!(self.action, Action::Close | Action::SendAndHalfClose(_))
    }

    pub(crate) fn commands(&self) -> &[Rc<Command>] {
        match &self.action {
            Action::Send(commands)
            | Action::SendAndHalfClose(commands)
            | Action::SendAndPause(commands) => commands,
            Action::Close => &[],
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(raw) = &self.raw {
            return write!(f, "raw \"{:.300}\"", raw.escape_ascii().to_string());
        }
        let words: Vec<String> =
            self.args.iter().map(|arg| format!("\"{}\"", arg.escape_ascii())).collect();
        write!(f, "{:.900}", words.join(" "))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "client {}: ", self.client)?;
        for (index, command) in self.commands().iter().enumerate() {
            write!(f, "{}{command}", if index > 0 { "\n          " } else { "" })?;
        }
        match self.action {
            Action::Send(_) => Ok(()),
            Action::SendAndHalfClose(_) => write!(f, " (and closes its half)"),
            Action::Close => write!(f, "(closes)"),
            Action::SendAndPause(_) => write!(f, " (and a pause)"),
        }
    }
}

//! Commands on `worker:commands:{node}` and `worker:commands:all`. Coordinators of any version send them, and so may
//! anybody with redis-cli.
//!
//! `{"action": "scale_up"}`, `"scale_down"` or `"restart"`; `count` is the number of workers more or fewer. A
//! coordinator adds `workers`, the number there should be, and `token`, its fencing token. Commands are added up
//! ([`Pending`]) and carried out a few times a second, so a flood does no more than its sum.

use serde_json::Value;
use stampede_wire::cluster::NodeCommand;

/// Most workers that one command may name.
const MOST: u64 = 1_024;

/// The change that a command asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// So many workers more.
    Up(usize),
    /// So many fewer.
    Down(usize),
    /// So many workers in all.
    To(usize),
    /// Replace all workers, one by one.
    Restart,
}

/// A command as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The change.
    pub action: Action,
    /// The sender's reason.
    pub reason: Option<String>,
    /// The fencing token, if a coordinator sent it.
    pub token: Option<u64>,
}

impl Command {
    /// Drops a token that is not the known coordinator's: anybody can write one. The history then shows the
    /// command as one from outside.
    pub(crate) fn disown_unless(&mut self, known: Option<u64>) {
        self.token = self.token.filter(|token| Some(*token) == known);
    }

    /// Reads a message; the error names the mistake.
    pub fn parse(text: &str) -> Result<Self, String> {
        let shown: String = text.chars().take(80).collect();
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("not JSON ({error}): {shown:?}"))?;
        let command: NodeCommand =
            serde_json::from_value(value).map_err(|_| format!("no action in {shown:?}"))?;
        Self::read(&command)
    }

    /// Checks a command's fields; the error names the mistake.
    pub fn read(command: &NodeCommand) -> Result<Self, String> {
        let number = |name: &str, known: Option<u64>, least: u64| {
            // A value that is no whole number stays among the fields that could not be read.
            let given = command.other.get(name).filter(|given| !given.is_null());
            match (known, given) {
                (Some(number), _) if (least..=MOST).contains(&number) => Ok(Some(number as usize)),
                (Some(number), _) => Err(out_of_range(name, least, &number)),
                (None, Some(given)) => Err(out_of_range(name, least, given)),
                (None, None) => Ok(None),
            }
        };
        let count = number("count", command.count, 1)?.unwrap_or(1);
        let workers = number("workers", command.workers, 0)?;
        let action = match (command.action.as_deref(), workers) {
            (Some("scale_up" | "scale_down"), Some(workers)) => Action::To(workers),
            (Some("scale_up"), None) => Action::Up(count),
            (Some("scale_down"), None) => Action::Down(count),
            (Some("restart"), _) => Action::Restart,
            (Some(other), _) => {
                let other: String = other.chars().take(80).collect();
                return Err(format!(
                    "unknown action {other:?}; known are scale_up, scale_down and restart"
                ));
            }
            (None, _) => {
                let shown = serde_json::to_string(command).unwrap_or_default();
                let shown: String = shown.chars().take(80).collect();
                return Err(format!("no action in {shown:?}"));
            }
        };
        Ok(Self {
            action,
            reason: command.reason.as_ref().map(|text| text.chars().take(200).collect()),
            token: command.token,
        })
    }
}

fn out_of_range(name: &str, least: u64, given: &dyn std::fmt::Display) -> String {
    format!("{name} must be a whole number from {least} to {MOST}: {given}")
}

/// Commands that were received and not carried out yet, added up.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Pending {
    to: Option<usize>,
    by: i64,
    pub(crate) restart: bool,
    pub(crate) reason: Option<String>,
    /// All of them came from the coordinator.
    pub(crate) decided: bool,
    pub(crate) commands: usize,
}

impl Pending {
    pub(crate) fn add(&mut self, command: Command) {
        let decided = command.token.is_some();
        self.decided = decided && (self.commands == 0 || self.decided);
        self.commands += 1;
        match command.action {
            Action::Up(count) => self.by = self.by.saturating_add(count as i64),
            Action::Down(count) => self.by = self.by.saturating_sub(count as i64),
            Action::To(workers) => (self.to, self.by) = (Some(workers), 0),
            Action::Restart => self.restart = true,
        }
        self.reason = command.reason.or_else(|| self.reason.take());
    }

    /// The number of workers there should be, if there are `now`, within bounds.
    pub(crate) fn target(&self, now: usize, min: usize, max: usize) -> usize {
        let from = self.to.unwrap_or(now) as i64;
        let wanted = from.saturating_add(self.by).clamp(0, MOST as i64) as usize;
        // The bounds may have moved since: a node outside of them is not pushed further out.
        wanted.clamp(min.min(now), max.max(min))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_older_software_and_of_coordinators_are_understood() {
        let up = Command::parse(r#"{"action":"scale_up"}"#).unwrap();
        assert_eq!(up, Command { action: Action::Up(1), reason: None, token: None });
        let text = r#"{"action":"scale_down","nodeId":"a","reason":"Idle queue","priority":"low",
            "count":2,"workers":3,"token":7}"#;
        let decided = Command::parse(text).unwrap();
        assert_eq!((decided.action, decided.token), (Action::To(3), Some(7)));
        let restart = Command::parse(r#"{"action":"restart"}"#).unwrap();
        assert_eq!(restart.action, Action::Restart);
        for (text, action) in [
            (r#"{"action":"scale_up","count":3}"#, Action::Up(3)),
            (r#"{"action":"scale_down","count":null,"workers":null}"#, Action::Down(1)),
        ] {
            assert_eq!(Command::parse(text).unwrap().action, action, "{text}");
        }
    }

    #[test]
    fn only_the_known_coordinators_token_makes_a_command_its_decision() {
        for (token, known, decided) in [
            (Some(7), Some(7), true),
            (Some(8), Some(7), false),
            (Some(7), None, false),
            (None, None, false),
        ] {
            let mut command = Command { action: Action::Up(1), reason: None, token };
            command.disown_unless(known);
            let mut pending = Pending::default();
            pending.add(command);
            assert_eq!(pending.decided, decided, "{token:?} {known:?}");
        }
    }

    #[test]
    fn what_is_no_command_is_refused_with_a_short_reason() {
        let long = "x".repeat(50_000);
        let hostile = format!(r#"{{"action":"{long}"}}"#);
        for (text, part) in [
            ("scale_up", "not JSON"),
            ("", "not JSON"),
            ("null", "no action"),
            ("[1,2]", "no action"),
            (r#"{"action":"explode"}"#, "unknown action \"explode\""),
            (r#"{"action":5}"#, "no action"),
            (r#"{"action":"scale_up","count":-1}"#, "count must be"),
            (r#"{"action":"scale_up","count":1e99}"#, "count must be"),
            (r#"{"action":"scale_up","workers":"many"}"#, "workers must be"),
            (&long, "not JSON"),
            (&hostile, "unknown action"),
        ] {
            let error = Command::parse(text).unwrap_err();
            assert!(error.contains(part) && error.len() < 500, "{text:.40}: {error:.200}");
        }
    }

    #[test]
    fn a_flood_is_worth_its_sum_within_bounds() {
        let mut pending = Pending::default();
        for _ in 0..1_000_000 {
            pending.add(Command { action: Action::Up(1), reason: None, token: None });
        }
        assert_eq!(pending.target(2, 1, 8), 8);
        for _ in 0..999_999 {
            pending.add(Command { action: Action::Down(1), reason: None, token: None });
        }
        assert_eq!(pending.target(2, 1, 8), 3);
        pending.add(Command { action: Action::To(0), reason: None, token: Some(1) });
        assert_eq!(pending.target(2, 1, 8), 1);
        assert!(!pending.decided, "not all of it came from a coordinator");
    }
}

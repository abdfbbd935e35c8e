//! Commands on `worker:commands:{node}` and `worker:commands:all`: what seed 000's coordinator sends,
//! and what anybody with redis-cli may.
//!
//! `{"action": "scale_up"}`, `"scale_down"` or `"restart"`; `count` says by how many. Whoever
//! coordinates adds `workers`, the number there should be, and `token`, by which one that does not
//! coordinate any more is known. A flood is worth no more than its sum: commands are added up
//! ([`Pending`]) and carried out a few times a second.

use serde_json::Value;

/// By how many workers one command may change their number.
const MOST: u64 = 1_024;

/// What to do.
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
    /// What to do.
    pub action: Action,
    /// Why, if the sender says so.
    pub reason: Option<String>,
    /// Whose decision it is, if a coordinator sent it.
    pub token: Option<u64>,
}

impl Command {
    /// Anybody can write a token: one that is not that of the known coordinator does not count, so
    /// that the command stands in the history as one from outside.
    pub(crate) fn disown_unless(&mut self, known: Option<u64>) {
        self.token = self.token.filter(|token| Some(*token) == known);
    }

    /// Reads a message; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let shown: String = text.chars().take(80).collect();
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("not JSON ({error}): {shown:?}"))?;
        let number = |name: &str, default: u64, range: std::ops::RangeInclusive<u64>| match value
            .get(name)
        {
            None | Some(Value::Null) => Ok(default),
            Some(given) => given.as_u64().filter(|n| range.contains(n)).ok_or_else(|| {
                format!("{name} must be a whole number from {} to {MOST}: {given}", range.start())
            }),
        };
        let count = number("count", 1, 1..=MOST)? as usize;
        let workers = match value.get("workers") {
            Some(_) => Some(number("workers", 0, 0..=MOST)? as usize),
            None => None,
        };
        let action = match (value.get("action").and_then(Value::as_str), workers) {
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
            (None, _) => return Err(format!("no action in {shown:?}")),
        };
        let reason = value.get("reason").and_then(Value::as_str);
        Ok(Self {
            action,
            reason: reason.map(|text| text.chars().take(200).collect()),
            token: value.get("token").and_then(Value::as_u64),
        })
    }
}

/// Commands that were heard and not carried out yet, added up.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Pending {
    to: Option<usize>,
    by: i64,
    pub(crate) restart: bool,
    pub(crate) reason: Option<String>,
    /// All of it came from a coordinator.
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

    /// How many workers there should be where there are so many now, within bounds.
    pub(crate) fn target(&self, now: usize, min: usize, max: usize) -> usize {
        let from = self.to.unwrap_or(now) as i64;
        let wanted = from.saturating_add(self.by).clamp(0, MOST as i64) as usize;
        // Whoever is outside the bounds already (they may have moved) is not pushed further out.
        wanted.clamp(min.min(now), max.max(min))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_seed_000_and_of_coordinators_are_understood() {
        let up = Command::parse(r#"{"action":"scale_up"}"#).unwrap();
        assert_eq!(up, Command { action: Action::Up(1), reason: None, token: None });
        let text = r#"{"action":"scale_down","nodeId":"a","reason":"Idle queue","priority":"low",
            "count":2,"workers":3,"token":7}"#;
        let decided = Command::parse(text).unwrap();
        assert_eq!((decided.action, decided.token), (Action::To(3), Some(7)));
        let restart = Command::parse(r#"{"action":"restart"}"#).unwrap();
        assert_eq!(restart.action, Action::Restart);
        assert_eq!(
            Command::parse(r#"{"action":"scale_up","count":3}"#).unwrap().action,
            Action::Up(3)
        );
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

//! Counters of calls by command, for `INFO commandstats`.
//!
//! A command is counted at its row of the table: an addition, without a lookup. Subcommands are counted by
//! name; they are rare.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use super::{COMMANDS, Command, Outcome, SUBCOMMANDS};

/// The counters of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counted {
    /// Calls that were run, those of scripts included.
    pub(crate) calls: u64,
    /// Run calls that were answered with an error.
    pub(crate) failed: u64,
    /// Calls that were refused before they ran.
    pub(crate) rejected: u64,
    /// The time of the calls of clients.
    pub(crate) spent: Duration,
}

/// The counters of all commands.
#[derive(Debug)]
pub(crate) struct Calls {
    commands: Vec<Counted>,
    subcommands: BTreeMap<String, Counted>,
}

impl Default for Calls {
    fn default() -> Self {
        Self { commands: vec![Counted::default(); COMMANDS.len()], subcommands: BTreeMap::new() }
    }
}

impl Calls {
    /// The counters of a call's command, or of its subcommand. `None` for a command that is not in
    /// the table.
    pub(crate) fn of(&mut self, command: &Command, args: &[Bytes]) -> Option<&mut Counted> {
        if command.flags.has(SUBCOMMANDS) {
            let name = command.full_name(args).into_owned();
            return Some(self.subcommands.entry(name).or_default());
        }
        let offset = std::ptr::from_ref(command).addr().wrapping_sub(COMMANDS.as_ptr().addr());
        self.commands.get_mut(offset / size_of::<Command>())
    }

    /// Counts a call that was run.
    pub(crate) fn count(&mut self, command: &Command, args: &[Bytes], outcome: Outcome) {
        if let Some(counted) = self.of(command, args) {
            counted.calls += 1;
            counted.failed += u64::from(outcome == Outcome::Failed);
        }
    }

    /// The counters of all commands that were called or refused, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Counted)> {
        let commands = COMMANDS.iter().map(|row| row.name).zip(&self.commands);
        let subcommands = self.subcommands.iter().map(|(name, counted)| (name.as_str(), counted));
        commands.chain(subcommands).filter(|(_, counted)| **counted != Counted::default())
    }
}

//! The commands, one file each. `bench` and `example` have crates of their own.

pub(crate) mod accounts;
pub(crate) mod audit;
pub(crate) mod campaigns;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod engine;
pub(crate) mod example;
pub(crate) mod nodes;
pub(crate) mod order;
mod progress;
pub(crate) mod queues;
pub(crate) mod serve;
mod session;
pub(crate) mod settings;
mod signals;
pub(crate) mod sticker;
mod table;
pub(crate) mod template;
pub(crate) mod ticket_keys;
pub(crate) mod token;
pub(crate) mod verify;
pub(crate) mod watch;
pub(crate) mod webhooks;
pub(crate) mod worker;

/// The command that started this process, for hints that can be typed as they stand.
pub(crate) fn myself() -> String {
    std::env::args().next().unwrap_or_else(|| "stampede".to_owned())
}

/// An error with an exit code of its own, which the help of its command explains.
#[derive(Debug)]
pub(crate) struct ExitWith {
    pub(crate) code: u8,
    pub(crate) message: String,
}

impl std::fmt::Display for ExitWith {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ExitWith {}

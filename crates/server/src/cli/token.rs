//! The command line of `stampede token`.

use std::time::Duration;

use clap::{Args, Subcommand};
use stampede_model::{EventId, Role};

use super::ServerArgs;

/// Options of `token`.
#[derive(Debug, Args)]
pub(crate) struct Token {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Print one JSON value instead of a table or a key
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: TokenCommand,
}

/// Commands of `token`.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make an API key and print it; it is stored only as a hash and cannot be shown again
    Create(TokenCreate),
    /// List API keys with their roles, limits, ends and last uses
    List {
        /// Only keys of this user
        #[arg(long)]
        user: Option<String>,
        /// Revoked keys, too
        #[arg(long)]
        all: bool,
    },
    /// Show one API key
    Show(WhichKey),
    /// Give an API key another secret and print it
    Rotate {
        #[command(flatten)]
        which: WhichKey,
        /// How long the former secret goes on working, such as 1h; at most 7d
        #[arg(long, value_parser = duration, default_value = "0s")]
        grace: Duration,
    },
    /// Revoke an API key: it is refused from the next request on
    Revoke(WhichKey),
}

/// Options of `token create`.
#[derive(Debug, Args)]
pub(crate) struct TokenCreate {
    /// What it may do: admin, organiser, scanner or viewer
    #[arg(long)]
    pub(crate) role: Role,
    /// Whose records it works on; keys of one user share events and tickets [default: a new user; with --url yours]
    #[arg(long)]
    pub(crate) user: Option<String>,
    /// A name by which it can be found; no other key of the user may have it
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Limit it to this event, with its orders, tickets and check-ins
    #[arg(long, value_name = "ID")]
    pub(crate) event: Option<EventId>,
    /// Limit it to this queue; may be repeated, and needs the role admin
    #[arg(long = "queue", value_name = "NAME")]
    pub(crate) queues: Vec<String>,
    /// When it ends, such as 12h, 30d or 52w from now [default: never]
    #[arg(long, value_parser = duration)]
    pub(crate) expires: Option<Duration>,
}

/// One key.
#[derive(Debug, Args)]
pub(crate) struct WhichKey {
    /// The key's id or name; to revoke, the key itself will do
    #[arg(value_name = "KEY")]
    pub(crate) which: String,
    /// The key's user, if several users have a key of this name
    #[arg(long)]
    pub(crate) user: Option<String>,
}

/// A time such as `90s`, `15m`, `12h`, `30d` or `52w`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let told = || format!("{text:?} is no time such as 90s, 15m, 12h, 30d or 52w");
    let unit = text.chars().last().ok_or_else(told)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        _ => return Err(told()),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| told())?;
    let all = number.checked_mul(seconds).filter(|all| *all <= 100 * 366 * 86_400);
    all.map(Duration::from_secs).ok_or_else(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        for (text, seconds) in [
            ("0s", 0),
            ("90s", 90),
            ("15m", 900),
            ("12h", 43_200),
            ("30d", 2_592_000),
            ("1w", 604_800),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "30", "d", "-1d", "1.5h", "1y", "30 d", "9999999999999999999w", "1é"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}

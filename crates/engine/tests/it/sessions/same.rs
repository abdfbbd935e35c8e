//! Rules by which two replies over connections count as equal, in addition to `crate::rules`.
//!
//! | commands | rule | reason |
//! |---|---|---|
//! | `HELLO` | without version and id | the engine reports 7.2, by which clients choose their commands; each server assigns its own ids |
//! | `CLIENT ID` | any number | each server assigns its own ids |
//! | `CLIENT LIST`, `CLIENT INFO` | the fields in [`FIELDS`], of the clients of the test, without flags `u` and `e` and the length of transactions | the others are addresses, ages, memory and implementation details |
//! | `CLIENT LIST`, `CLIENT INFO` in `EXEC` | without flags and multi | for Redis the transaction lasts until `EXEC` has ended |
//! | messages that came together | equal after sorting | patterns have the order of a hash table |
//! | messages in RESP 3 | compared separately from replies | Redis 7.0 sends a client's own messages before the reply to its `PUBLISH`, 7.2 after it, the engine after the whole batch of replies |
//! | `UNSUBSCRIBE` and `PUNSUBSCRIBE` from everything | without the names | subscriptions have the order of a hash table |
//! | `PUBSUB CHANNELS`, `CONFIG GET` | equal after sorting | they have the order of a hash table |
//! | `INFO`, `LASTSAVE` | same type | the figures differ |
//! | replies to a client that another one killed | those that both servers sent | unsent replies are lost |
//! | `SMEMBERS`, `HGETALL` and the like | equal after sorting | `differential.rs` and the comparison of contents check the order of small encodings |
//! | `EXEC` | each reply by the rule of its command | |

use super::client::Context;
use super::frame;
use super::side::field;
use super::step::{Command, word};
use crate::rules;

/// The fields of `CLIENT LIST` that must be equal.
const FIELDS: [&str; 11] =
    ["name", "flags", "db", "sub", "psub", "ssub", "multi", "cmd", "user", "redir", "resp"];

/// The client ids that the two servers assigned to the clients of the test.
pub(crate) type Ids<'a> = &'a [(i64, i64)];

/// Whether a reply stands alone or inside an `EXEC`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Outside,
    InExec,
}

pub(crate) fn same(context: &Context, ours: &[u8], theirs: &[u8], ids: Ids<'_>) -> bool {
    if ours == theirs {
        return true;
    }
    let Context::Reply { command, queued } = context else { return false };
    if command.name() == "EXEC" {
        let (Some(our_items), Some(their_items)) = (frame::items(ours), frame::items(theirs))
        else {
            return false;
        };
        return ours[0] == theirs[0]
            && our_items.len() == their_items.len()
            && our_items.len() == queued.len()
            && queued.iter().zip(our_items.iter().zip(&their_items)).all(
                |(command, (ours, theirs))| same_reply(command, ours, theirs, ids, Place::InExec),
            );
    }
    same_reply(command, ours, theirs, ids, Place::Outside)
}

fn same_reply(command: &Command, ours: &[u8], theirs: &[u8], ids: Ids<'_>, place: Place) -> bool {
    if ours == theirs {
        return true;
    }
    let sub = command.args.get(1).map(|arg| word(arg)).unwrap_or_default();
    let is_about_connection = matches!(
        command.name().as_str(),
        "HELLO"
            | "CLIENT"
            | "INFO"
            | "LASTSAVE"
            | "PUBSUB"
            | "UNSUBSCRIBE"
            | "PUNSUBSCRIBE"
            | "CONFIG"
            | "(raw)"
    );
    let is_plain = |reply: &[u8]| !matches!(reply[0], b'>' | b'=');
    if !is_about_connection && is_plain(ours) && is_plain(theirs) {
        return rules::same(&command.args, ours, theirs, &mut |_| false);
    }
    if ours[0] != theirs[0] || ours[0] == b'-' {
        return false;
    }
    match (command.name().as_str(), sub.as_str()) {
        ("HELLO", _) => {
            let but = |reply: &[u8]| {
                let items = frame::items(reply).unwrap_or_default();
                let kept = items.iter().enumerate().filter(|(at, _)| !matches!(at, 3 | 7));
                kept.map(|(_, item)| item.to_vec()).collect::<Vec<_>>()
            };
            but(ours) == but(theirs)
        }
        ("CLIENT", "ID") | ("INFO" | "LASTSAVE", _) => true,
        ("CLIENT", "LIST" | "INFO") => {
            clients(ours, ids, |pair| pair.0, place) == clients(theirs, ids, |pair| pair.1, place)
        }
        ("PUBSUB", "CHANNELS") => sorted(ours) == sorted(theirs),
        ("UNSUBSCRIBE" | "PUNSUBSCRIBE", "") => {
            let but_name = |reply: &[u8]| {
                let items = frame::items(reply).unwrap_or_default();
                [items[0].to_vec(), items[2].to_vec()]
            };
            but_name(ours) == but_name(theirs)
        }
        ("CONFIG", "GET") => pairs(ours) == pairs(theirs),
        _ => false,
    }
}

fn pairs(reply: &[u8]) -> Vec<Vec<&[u8]>> {
    let items = frame::items(reply).unwrap_or_default();
    let mut pairs: Vec<Vec<&[u8]>> = items.chunks(2).map(<[&[u8]]>::to_vec).collect();
    pairs.sort();
    pairs
}

fn sorted(reply: &[u8]) -> Vec<&[u8]> {
    let mut items = frame::items(reply).unwrap_or_default();
    items.sort_unstable();
    items
}

/// The lines of the test's own clients, by their index in the test.
fn clients(
    reply: &[u8],
    ids: Ids<'_>,
    own: impl Fn(&(i64, i64)) -> i64,
    within: Place,
) -> Vec<(usize, Vec<String>)> {
    let text = String::from_utf8_lossy(frame::text(reply)).into_owned();
    let mut found = Vec::new();
    for line in text.lines() {
        let line = line.strip_prefix("txt:").unwrap_or(line);
        let id = field(line, "id").and_then(|id| id.parse().ok());
        let place = id.and_then(|id: i64| ids.iter().position(|pair| own(pair) == id));
        if let Some(place) = place {
            let part = |name: &&str| {
                let text = field(line, name).unwrap_or("missing");
                // `u`: unblocked, its next command not processed yet; `e`: never evicted.
                match (*name, text.replace(['u', 'e'], "")) {
                    ("flags", flags) if flags.is_empty() => "N".to_owned(),
                    ("flags", flags) => flags,
                    // An aborted transaction is not kept.
                    ("multi", count) => (count != "-1").to_string(),
                    _ => text.to_owned(),
                }
            };
            let fields = FIELDS
                .iter()
                .filter(|name| within == Place::Outside || !matches!(**name, "flags" | "multi"));
            found.push((place, fields.map(part).collect()));
        }
    }
    found.sort();
    found
}

//! Check and repair of a journal that no server has open, for a person: reports name keys.

use std::path::Path;

use bytes::Bytes;

use crate::command;
use crate::db::{DATABASES, effects};
use crate::journal::{self, RepairRule, Repaired};

/// Tells what [`repair_journal`] would do, without changing anything; needs the directory's lock.
///
/// The error is [`JournalError::Unrepairable`](journal::Error::Unrepairable) if the repair would refuse.
pub fn plan_repair(dir: &Path, rule: RepairRule) -> Result<Repaired, journal::Error> {
    journal::plan_repair(dir, rule, &key_of)
}

/// Repairs a damaged journal: the result is the state of one moment, or the repair refuses.
///
/// With [`RepairRule::Salvage`] it may also be all that is readable; the report then names what is missing.
pub fn repair_journal(dir: &Path, rule: RepairRule) -> Result<Repaired, journal::Error> {
    journal::repair(dir, rule, &key_of)
}

/// The key that a snapshot item makes, without control characters; `None` if the bytes are not an item.
fn key_of(item: &[u8]) -> Option<String> {
    let (db, args) = effects::decode(&Bytes::copy_from_slice(item)).next()?.ok()?;
    let is_effect = command::is_effect(args.first()?);
    let key = args.get(1).filter(|_| db < DATABASES && is_effect)?;
    let key = String::from_utf8_lossy(key).escape_debug().to_string();
    Some(if db == 0 { key } else { format!("{key} (database {db})") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Effects;

    #[test]
    fn an_item_is_named_by_its_key_and_other_bytes_are_not() {
        let mut effects = Effects::default();
        effects.push(2, &[&b"HSET"[..], b"bull:q\n:1", b"a", b"b"]);
        assert_eq!(key_of(effects.as_bytes()).as_deref(), Some("bull:q\\n:1 (database 2)"));
        for other in [&b""[..], b"\0", b"abcdefgh", &[0xff; 40]] {
            assert_eq!(key_of(other), None, "{other:?}");
        }
    }
}

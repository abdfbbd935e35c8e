//! When and from where keys were last used: noted in memory by every request, written in groups by a task. A key is written
//! at most once a minute. A crash loses at most the last minute.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stampede_model::{KeyId, Timestamp};
use stampede_store::KeyUse;

/// Between two writes of the same key.
const PERIOD: Duration = Duration::from_secs(60);

/// The last use of a key.
struct Last {
    at: Timestamp,
    from: Option<IpAddr>,
    /// Whether this use is still to be written.
    is_new: bool,
    /// When a use was written last.
    written: Option<Instant>,
}

impl Last {
    fn is_due(&self) -> bool {
        self.is_new && !self.was_written_lately()
    }

    fn was_written_lately(&self) -> bool {
        self.written.is_some_and(|written| written.elapsed() < PERIOD)
    }
}

/// The last uses of keys.
#[derive(Default)]
pub(crate) struct Uses {
    last: Mutex<HashMap<KeyId, Last>>,
}

impl Uses {
    /// Notes a use.
    pub(crate) fn note(&self, key: KeyId, at: Timestamp, from: Option<IpAddr>) {
        let mut last = self.last.lock();
        let written = last.get(&key).and_then(|last| last.written);
        last.insert(key, Last { at, from, is_new: true, written });
    }

    /// The uses to be written now. Keys that were neither used nor written for a minute are forgotten.
    pub(crate) fn due(&self) -> Vec<KeyUse> {
        let mut last = self.last.lock();
        last.retain(|_, last| last.is_new || last.was_written_lately());
        taken(&mut last, Last::is_due)
    }

    /// All uses that are not written yet.
    pub(crate) fn all(&self) -> Vec<KeyUse> {
        taken(&mut self.last.lock(), |last| last.is_new)
    }

    /// Takes uses back that could not be written; they are tried again after a minute.
    pub(crate) fn put_back(&self, uses: Vec<KeyUse>) {
        let mut last = self.last.lock();
        for used in uses {
            if let Some(last) = last.get_mut(&used.key) {
                last.is_new = true;
            }
        }
    }
}

fn taken(last: &mut HashMap<KeyId, Last>, which: impl Fn(&Last) -> bool) -> Vec<KeyUse> {
    let chosen = last.iter_mut().filter(|(_, last)| which(last));
    let uses = chosen.map(|(key, last)| {
        (last.is_new, last.written) = (false, Some(Instant::now()));
        KeyUse { key: *key, at: last.at, from: last.from.map(|from| from.to_string()) }
    });
    uses.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_written_at_most_once_a_minute_and_at_the_end() {
        let (uses, key) = (Uses::default(), KeyId::generate());
        let at = |second| Timestamp::from_second(second).unwrap();
        uses.note(key, at(1), None);
        uses.note(key, at(2), "192.0.2.7".parse().ok());
        let from = Some("192.0.2.7".to_owned());
        assert_eq!(uses.due(), [KeyUse { key, at: at(2), from }]);
        uses.note(key, at(3), None);
        assert_eq!(uses.due(), [], "it was written just now");
        let rest = uses.all();
        assert_eq!(rest, [KeyUse { key, at: at(3), from: None }]);
        assert_eq!(uses.all(), []);
        uses.put_back(rest);
        assert_eq!(uses.all().len(), 1);
    }
}

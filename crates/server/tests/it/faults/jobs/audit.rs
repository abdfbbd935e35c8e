//! Jobs as they are at the end, compared with what was acknowledged. [`compare`] is pure.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::process::Command;

use super::{Book, QUEUE};
use crate::faults::caller::Caller;
use crate::faults::ledger::{Audit, Site};

/// Entries of the stream of events that are read at once.
const PAGE: &str = "5000";

/// Jobs and their effects, as they are found after the campaign.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Token and id of each line in the books of the consumers.
    pub(super) effects: Vec<(String, String)>,
    /// How often each id has a `completed` event.
    pub(super) completed: HashMap<String, usize>,
    /// Reasons of `failed` events, by id.
    pub(super) failed: BTreeMap<String, String>,
    /// Dead letters and locks that are left.
    pub(super) left: Vec<String>,
}

impl Seen {
    /// Reads books, events, dead letters and locks.
    pub(super) async fn read(site: &Site) -> Result<Self, String> {
        let mut seen = Self { effects: effects(site)?, ..Self::default() };
        seen.read_events(site);
        for queue in [QUEUE, "tickets"] {
            let path = format!("/api/queues/{queue}/dead-letters");
            let letters = Caller::new(site).get(&path).await?;
            seen.left.extend(
                letters["letters"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|letter| format!("a dead letter of {queue}: {letter}")),
            );
        }
        let locks = redis_cli(&site.direct_broker, &["--scan", "--pattern", "bull:*:lock"]);
        seen.left.extend(
            locks.lines().filter(|key| !key.is_empty()).map(|key| format!("a lock: {key}")),
        );
        Ok(seen)
    }

    /// Counts the ends in the stream of events, page by page.
    fn read_events(&mut self, site: &Site) {
        let mut after = "-".to_owned();
        loop {
            let key = format!("bull:{QUEUE}:events");
            let page =
                redis_cli(&site.direct_broker, &["XRANGE", &key, &after, "+", "COUNT", PAGE]);
            let lines: Vec<&str> = page.lines().collect();
            let starts: Vec<usize> =
                (0..lines.len()).filter(|line| is_entry(lines[*line])).collect();
            let Some(last) = starts.last() else { return };
            after = format!("({}", lines[*last]);
            for (number, start) in starts.iter().enumerate() {
                let end = starts.get(number + 1).copied().unwrap_or(lines.len());
                self.count(&lines[start + 1..end]);
            }
        }
    }

    /// Counts one event, given as names and values in turn.
    fn count(&mut self, event: &[&str]) {
        let field = |name: &str| {
            event.chunks_exact(2).find(|pair| pair[0] == name).map(|pair| pair[1].to_owned())
        };
        match (field("event").as_deref(), field("jobId")) {
            (Some("completed"), Some(id)) => *self.completed.entry(id).or_default() += 1,
            (Some("failed"), Some(id)) => {
                drop(self.failed.insert(id, field("failedReason").unwrap_or_default()))
            }
            _ => {}
        }
    }
}

/// The id of an entry: milliseconds, a dash, a number.
fn is_entry(line: &str) -> bool {
    let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    line.split_once('-')
        .is_some_and(|(time, count)| time.len() > 9 && number(time) && number(count))
}

fn effects(site: &Site) -> Result<Vec<(String, String)>, String> {
    let mut effects = Vec::new();
    for entry in std::fs::read_dir(&site.books).map_err(|error| error.to_string())?.flatten() {
        if entry.path().extension().is_none_or(|end| end != "book") {
            continue;
        }
        for line in std::fs::read_to_string(entry.path()).unwrap_or_default().lines() {
            if let Some((token, id)) =
                line.strip_prefix("effect ").and_then(|rest| rest.split_once(' '))
            {
                effects.push((token.to_owned(), id.to_owned()));
            }
        }
    }
    Ok(effects)
}

/// What redis-cli prints.
pub(super) fn redis_cli(url: &str, words: &[&str]) -> String {
    let output = Command::new("redis-cli")
        .args(["--no-auth-warning", "--raw", "-u", url.trim()])
        .args(words)
        .output();
    let output =
        output.unwrap_or_else(|error| panic!("redis-cli ({error}): apt-get install redis-server"));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Compares what was acknowledged with what is there.
pub(super) fn compare(book: &Book, seen: &Seen) -> Audit {
    let mut audit = Audit::default();
    let mut token_of: HashMap<&str, &str> = HashMap::new();
    let mut id_of: HashMap<&str, &str> = HashMap::new();
    for (token, id) in book.acknowledged.iter().chain(&seen.effects) {
        let other = token_of.insert(id, token).filter(|other| other != token);
        audit
            .doubled
            .extend(other.map(|other| format!("id {id} was given to {token} and {other}")));
        let other = id_of.insert(token, id).filter(|other| other != id);
        audit
            .doubled
            .extend(other.map(|other| format!("{token} was added as {id} and as {other}")));
    }
    let done: HashSet<&str> = seen.effects.iter().map(|(token, _)| token.as_str()).collect();
    for (token, id) in &book.acknowledged {
        match (done.contains(token.as_str()), seen.completed.get(id)) {
            (true, Some(1)) => {}
            (true, Some(ends)) => {
                audit.doubled.push(format!("job {id} has completed {ends} times"))
            }
            (true, None) => {
                audit.lost.push(format!("job {id} ({token}) has had its effect and never ended"))
            }
            (false, ends) => audit.lost.push(format!(
                "job {id} ({token}) had no effect; completed: {}",
                ends.unwrap_or(&0)
            )),
        }
    }
    audit
        .wrong
        .extend(seen.failed.iter().map(|(id, reason)| format!("job {id} has failed: {reason}")));
    audit.wrong.extend(seen.left.iter().cloned());
    audit.wrong.extend(book.contradictions.iter().cloned());
    audit.acknowledged = vec![("jobs", book.acknowledged.len())];
    let happened = book.unknown.iter().filter(|token| done.contains(token.as_str())).count();
    audit.notes = vec![
        ("adds without an answer", book.unknown.len()),
        ("of which happened", happened),
        ("runs of a job after its first", seen.effects.len() - done.len()),
    ];
    audit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(token: &str, id: &str) -> (String, String) {
        (token.to_owned(), id.to_owned())
    }

    /// How many findings there are after a change: lost, doubled, wrong.
    fn findings(change: impl FnOnce(&mut Book, &mut Seen)) -> (usize, usize, usize) {
        let mut book = Book {
            acknowledged: vec![pair("a", "1"), pair("b", "2")],
            unknown: vec!["c".to_owned()],
            ..Book::default()
        };
        let mut seen = Seen {
            effects: vec![pair("a", "1"), pair("a", "1"), pair("b", "2"), pair("c", "3")],
            completed: ["1", "2", "3"].map(|id| (id.to_owned(), 1)).into(),
            ..Seen::default()
        };
        change(&mut book, &mut seen);
        let audit = compare(&book, &seen);
        (audit.lost.len(), audit.doubled.len(), audit.wrong.len())
    }

    #[test]
    fn every_job_that_is_lost_or_doubled_is_found() {
        assert_eq!(
            findings(|_, _| {}),
            (0, 0, 0),
            "a second run is none, and an unknown add may have happened"
        );
        assert_eq!(findings(|_, seen| drop(seen.effects.pop())), (0, 0, 0), "or not");
        assert_eq!(findings(|_, seen| drop(seen.effects.remove(2))), (1, 0, 0), "no effect");
        assert_eq!(
            findings(|_, seen| seen.completed.retain(|id, _| id != "2")),
            (1, 0, 0),
            "no end"
        );
        assert_eq!(
            findings(|_, seen| seen.completed.extend([("2".to_owned(), 2)])),
            (0, 1, 0),
            "two ends"
        );
        assert_eq!(
            findings(|_, seen| seen.effects.push(pair("d", "2"))).1,
            1,
            "an id given out twice"
        );
        assert_eq!(findings(|_, seen| seen.effects.push(pair("b", "9"))).1, 1, "added twice");
        assert_eq!(
            findings(|_, seen| drop(seen.failed.insert("2".to_owned(), String::new()))),
            (0, 0, 1)
        );
        assert_eq!(findings(|_, seen| seen.left.push("a lock".to_owned())), (0, 0, 1));
    }
}

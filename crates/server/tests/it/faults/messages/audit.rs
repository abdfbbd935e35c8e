//! Comparing the recipients of acknowledged campaigns with the messages that have come.

use std::collections::BTreeMap;

use super::Book;
use crate::faults::caller::Caller;
use crate::faults::ledger::Audit;
use crate::text;

/// Campaign → its recipients and their states.
pub(super) type Observed = BTreeMap<String, BTreeMap<String, String>>;

/// Reads the recipients of campaigns. A campaign that is not there has none.
pub(super) async fn observe(caller: &Caller, campaigns: &[String]) -> Result<Observed, String> {
    let mut observed = Observed::new();
    for id in campaigns {
        let page = match caller.get(&format!("/api/contracts/{id}/recipients?limit=1000")).await {
            Ok(page) => page,
            Err(reason) if reason.contains(": 404 ") => continue,
            Err(reason) => return Err(reason),
        };
        let rows = page["recipients"].as_array().into_iter().flatten();
        let rows = rows.map(|row| (text(&row["id"]), text(&row["status"]))).collect();
        observed.insert(id.clone(), rows);
    }
    Ok(observed)
}

pub(super) fn compare(book: &Book, observed: &Observed, recipients: usize) -> Audit {
    let mut audit = Audit { wrong: book.contradictions.clone(), ..Audit::default() };
    let mut arrivals = book.arrivals.clone();
    let (mut sent, mut unknown, mut failed) = (0, 0, 0);
    for id in &book.campaigns {
        let Some(rows) = observed.get(id) else {
            audit.lost.push(format!("campaign {id}"));
            continue;
        };
        if rows.len() != recipients {
            audit.lost.push(format!("campaign {id} has {} of {recipients} recipients", rows.len()));
        }
        for (row, state) in rows {
            let times = arrivals.remove(row).unwrap_or_default();
            if times > 1 {
                audit.doubled.push(format!("recipient {row} of {id} got {times} messages"));
            }
            match (state.as_str(), times) {
                ("sent", 0) => {
                    audit.lost.push(format!("the message of {row} of {id}, which is sent"))
                }
                ("sent", _) => sent += 1,
                ("unknown", _) => unknown += 1,
                ("failed", 0) => failed += 1,
                _ => audit.wrong.push(format!("recipient {row} of {id} is {state}, {times} came")),
            }
        }
    }
    let to_nobody = arrivals.keys().map(|row| format!("a message to {row}, whom no request named"));
    audit.doubled.extend(to_nobody);
    audit.acknowledged = vec![("campaigns", book.campaigns.len()), ("messages sent", sent)];
    audit.notes = vec![("messages unknown", unknown), ("messages failed", failed)];
    audit
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One campaign of two recipients: their states, and how many messages have come for each.
    fn audited(states: &[(&str, &str)], came: &[(&str, u32)]) -> [usize; 3] {
        let arrivals = came.iter().map(|(row, times)| ((*row).to_owned(), *times)).collect();
        let book = Book { campaigns: vec!["c".to_owned()], arrivals, ..Book::default() };
        let rows = states.iter().map(|(row, state)| ((*row).to_owned(), (*state).to_owned()));
        let audit = compare(&book, &[("c".to_owned(), rows.collect())].into(), 2);
        [audit.lost.len(), audit.doubled.len(), audit.wrong.len()]
    }

    #[test]
    fn each_kind_of_difference_is_found() {
        let sent = [("1", "sent"), ("2", "sent")];
        assert_eq!(audited(&sent, &[("1", 1), ("2", 1)]), [0, 0, 0]);
        let unknown = [("1", "unknown"), ("2", "unknown")];
        assert_eq!(audited(&unknown, &[("1", 1)]), [0, 0, 0], "nobody knows, and both may be");
        assert_eq!(audited(&[("1", "failed"), ("2", "sent")], &[("2", 1)]), [0, 0, 0]);
        // Lost: a message, a recipient, a campaign.
        assert_eq!(audited(&sent, &[("1", 1)]), [1, 0, 0]);
        assert_eq!(audited(&sent[..1], &[("1", 1)]), [1, 0, 0]);
        let book = Book { campaigns: vec!["c".to_owned()], ..Book::default() };
        assert_eq!(compare(&book, &Observed::new(), 2).lost.len(), 1);
        // Doubled: a message that came twice, one to nobody.
        assert_eq!(audited(&sent, &[("1", 2), ("2", 1)]), [0, 1, 0]);
        assert_eq!(audited(&unknown, &[("1", 2)]), [0, 1, 0]);
        assert_eq!(audited(&sent, &[("1", 1), ("2", 1), ("3", 1)]), [0, 1, 0]);
        // Wrong: a message came, and the recipient has another end; or none.
        assert_eq!(audited(&[("1", "failed"), ("2", "sent")], &[("1", 1), ("2", 1)]), [0, 0, 1]);
        assert_eq!(audited(&[("1", "queued"), ("2", "sent")], &[("2", 1)]), [0, 0, 1]);
    }
}

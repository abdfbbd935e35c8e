//! Comparing acknowledged scans with the log and the figures of the event.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Acknowledged, Book};
use crate::faults::caller::Caller;
use crate::faults::ledger::Audit;
use crate::text;

/// The log of the event, and its figures.
#[derive(Debug, Default)]
pub(super) struct Observed {
    /// Scan → what the log says.
    scans: BTreeMap<String, Acknowledged>,
    entries: u64,
    refused: u64,
}

/// Reads the whole log and the figures.
pub(super) async fn observe(caller: &Caller, event: &str) -> Result<Observed, String> {
    let (mut observed, mut after) = (Observed::default(), String::new());
    loop {
        let page = caller.get(&format!("/api/events/{event}/scans?limit=1000{after}")).await?;
        let scans = page["scans"].as_array().into_iter().flatten();
        observed.scans.extend(scans.map(|scan| (text(&scan["id"]), logged(scan))));
        match page["next"].as_u64() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    let figures = caller.get(&format!("/api/events/{event}/checkin")).await?;
    observed.entries = figures["entries"].as_u64().unwrap_or_default();
    observed.refused = figures["refused"].as_u64().unwrap_or_default();
    Ok(observed)
}

fn logged(scan: &Value) -> Acknowledged {
    Acknowledged {
        ticket: text(&scan["ticket"]),
        result: text(&scan["result"]),
        undone: !scan["undoneAt"].is_null(),
    }
}

/// Whether the guest went in and stayed so.
fn counts(scan: &Acknowledged) -> bool {
    scan.result == "ok" && !scan.undone
}

pub(super) fn compare(book: &Book, observed: &Observed) -> Audit {
    let mut audit = Audit { wrong: book.contradictions.clone(), ..Audit::default() };
    for (id, scan) in &book.scans {
        match observed.scans.get(id) {
            None => audit.lost.push(format!("scan {id} of ticket {}", scan.ticket)),
            Some(found) if scan.undone && !found.undone => {
                audit.lost.push(format!("the undo of scan {id}"));
            }
            Some(found) if found != scan => {
                audit.wrong.push(format!("scan {id} is {found:?}, acknowledged was {scan:?}"));
            }
            Some(_) => {}
        }
    }
    for (id, scan) in observed.scans.iter().filter(|(id, _)| !book.scans.contains_key(*id)) {
        audit.doubled.push(format!("scan {id} was acknowledged to nobody: {scan:?}"));
    }
    let mut inside = BTreeSet::new();
    for scan in observed.scans.values().filter(|scan| counts(scan)) {
        if !inside.insert(&scan.ticket) {
            audit.doubled.push(format!("ticket {} was let in twice", scan.ticket));
        }
    }
    let redeemed = observed.scans.values().filter(|scan| scan.result == "ok");
    let redeemed: BTreeSet<&String> = redeemed.map(|scan| &scan.ticket).collect();
    for (id, scan) in observed.scans.iter().filter(|(_, scan)| scan.result != "ok") {
        if scan.result != "already_redeemed" || !redeemed.contains(&scan.ticket) {
            audit.wrong.push(format!("scan {id} was refused: {scan:?}"));
        }
    }
    let refused = observed.scans.values().filter(|scan| scan.result != "ok").count();
    if (observed.entries, observed.refused) != (inside.len() as u64, refused as u64) {
        audit.wrong.push(format!(
            "the figures say {} entries and {} refusals, the log {} and {refused}",
            observed.entries,
            observed.refused,
            inside.len()
        ));
    }
    let undone = book.scans.values().filter(|scan| scan.undone).count();
    audit.acknowledged = vec![("scans", book.scans.len()), ("undone scans", undone)];
    audit.notes = vec![("guests inside", inside.len())];
    audit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(result: &str, undone: bool) -> Acknowledged {
        Acknowledged { ticket: "t".to_owned(), result: result.to_owned(), undone }
    }

    fn scans(list: &[(&str, Acknowledged)]) -> BTreeMap<String, Acknowledged> {
        list.iter().map(|(id, scan)| ((*id).to_owned(), scan.clone())).collect()
    }

    fn audited(
        acknowledged: &[(&str, Acknowledged)],
        logged: &[(&str, Acknowledged)],
    ) -> [usize; 3] {
        let book = Book { scans: scans(acknowledged), ..Book::default() };
        let logged = scans(logged);
        let entries = logged.values().filter(|scan| counts(scan)).map(|scan| &scan.ticket);
        let entries = entries.collect::<BTreeSet<_>>().len() as u64;
        let refused = logged.values().filter(|scan| scan.result != "ok").count() as u64;
        let audit = compare(&book, &Observed { scans: logged, entries, refused });
        [audit.lost.len(), audit.doubled.len(), audit.wrong.len()]
    }

    #[test]
    fn each_kind_of_difference_is_found() {
        let (ok, undone, again) =
            (scan("ok", false), scan("ok", true), scan("already_redeemed", false));
        let log = [("1", ok.clone()), ("2", again.clone())];
        assert_eq!(audited(&log, &log), [0, 0, 0]);
        let after_undo = [("1", undone.clone()), ("2", ok.clone())];
        assert_eq!(audited(&after_undo, &after_undo), [0, 0, 0]);
        // Lost: a scan, an undo.
        assert_eq!(audited(&log, &log[..1]), [1, 0, 0]);
        assert_eq!(audited(&[("1", undone)], &log[..1]), [1, 0, 0]);
        // Doubled: a scan that nobody was told of, a second entry.
        assert_eq!(audited(&log[..1], &log), [0, 1, 0]);
        let twice = [("1", ok.clone()), ("2", ok)];
        assert_eq!(audited(&twice, &twice), [0, 1, 0]);
        // Wrong: a refusal without an entry, another result, figures.
        assert_eq!(audited(&log[1..], &log[1..]), [0, 0, 1]);
        assert_eq!(audited(&[("1", again)], &log[..1]), [0, 0, 1]);
        let wrong = compare(&Book::default(), &Observed { entries: 1, ..Observed::default() });
        assert_eq!(wrong.wrong.len(), 1);
    }
}

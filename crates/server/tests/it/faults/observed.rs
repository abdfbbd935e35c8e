//! Orders and tickets as they are at the end, compared with what was acknowledged. Pure.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::ledger::Audit;
use super::orders::{Book, Fate};

/// What the API shows at the end.
#[derive(Debug, Default)]
pub(super) struct Observed {
    /// All tickets of the event, as the API shows them.
    pub(super) tickets: Vec<Value>,
    /// Batch → its state.
    pub(super) batches: BTreeMap<String, Value>,
}

/// Compares what was acknowledged with what is there.
pub(super) fn compare(book: &Book, observed: &Observed) -> Audit {
    let mut audit = Audit::default();
    let mut found: HashMap<&str, &Value> = HashMap::new();
    let mut numbers: HashMap<u64, &str> = HashMap::new();
    for ticket in &observed.tickets {
        let id = ticket["id"].as_str().unwrap_or_default();
        if found.insert(id, ticket).is_some() {
            audit.doubled.push(format!("ticket {id} is listed twice"));
        }
        if let Some(other) = numbers.insert(ticket["number"].as_u64().unwrap_or_default(), id) {
            audit.doubled.push(format!("tickets {id} and {other} have the same number"));
        }
        if !book.tickets.contains_key(id) {
            audit.doubled.push(format!("nobody was told of ticket {id}: {ticket}"));
        }
    }
    for (id, fate) in &book.tickets {
        compare_ticket(id, fate, found.get(id.as_str()).copied(), &mut audit);
    }
    for (batch, tickets) in &book.orders {
        compare_batch(book, batch, tickets, observed.batches.get(batch), &mut audit);
    }
    audit.wrong.extend(book.contradictions.iter().cloned());
    audit.acknowledged = vec![
        ("orders", book.orders.len()),
        ("tickets", book.tickets.len()),
        ("changes", book.edits),
    ];
    audit.notes = vec![("requests answered only when repeated", book.settled_by_retry)];
    audit
}

fn compare_ticket(id: &str, fate: &Fate, found: Option<&Value>, audit: &mut Audit) {
    match (fate, found) {
        (Fate::Deleted, None) => {}
        (Fate::Deleted, Some(_)) => audit.lost.push(format!("the deletion of ticket {id}")),
        (_, None) => audit.lost.push(format!("ticket {id}")),
        (Fate::Void, Some(ticket)) if ticket["status"] == "void" => {}
        (Fate::Void, Some(ticket)) => {
            audit.lost.push(format!("the withdrawal of ticket {id}: {}", ticket["status"]))
        }
        (Fate::Valid { name }, Some(ticket)) => {
            if ticket["name"] != name.as_str() {
                audit
                    .lost
                    .push(format!("the name {name} of ticket {id}: it is {}", ticket["name"]));
            }
            if ticket["status"] != "completed" {
                audit
                    .wrong
                    .push(format!("ticket {id} is {}: {}", ticket["status"], ticket["error"]));
            }
        }
    }
}

fn compare_batch(
    book: &Book,
    batch: &str,
    tickets: &[String],
    found: Option<&Value>,
    audit: &mut Audit,
) {
    let count = |wanted: fn(&Fate) -> bool| {
        let fates = tickets.iter().filter_map(|ticket| book.tickets.get(ticket));
        fates.filter(|fate| wanted(fate)).count() as u64
    };
    let (valid, void) =
        (count(|fate| matches!(fate, Fate::Valid { .. })), count(|fate| *fate == Fate::Void));
    let Some(found) = found else {
        return audit.lost.push(format!("order {batch}"));
    };
    let counters = ["total", "completed", "voided", "failed"].map(|name| found[name].as_u64());
    if counters != [valid + void, valid, void, 0].map(Some) {
        audit.wrong.push(format!(
            "order {batch} counts {counters:?}, and has {valid} valid and {void} void tickets"
        ));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn book() -> Book {
        let fates = [
            ("a", Fate::Valid { name: "Ann".to_owned() }),
            ("b", Fate::Void),
            ("c", Fate::Deleted),
        ];
        Book {
            orders: [("batch".to_owned(), vec!["a".to_owned(), "b".to_owned(), "c".to_owned()])]
                .into(),
            tickets: fates.map(|(id, fate)| (id.to_owned(), fate)).into(),
            ..Book::default()
        }
    }

    fn as_acknowledged() -> Observed {
        let ticket = |id: &str, number: u64, status: &str| json!({ "id": id, "number": number, "name": "Ann", "status": status });
        let batch = json!({ "total": 2, "completed": 1, "voided": 1, "failed": 0 });
        Observed {
            tickets: vec![ticket("a", 1, "completed"), ticket("b", 2, "void")],
            batches: [("batch".to_owned(), batch)].into(),
        }
    }

    /// How many findings there are after a change: lost, doubled, wrong.
    fn findings(change: impl FnOnce(&mut Observed)) -> (usize, usize, usize) {
        let mut observed = as_acknowledged();
        change(&mut observed);
        let audit = compare(&book(), &observed);
        (audit.lost.len(), audit.doubled.len(), audit.wrong.len())
    }

    #[test]
    fn every_difference_from_what_was_acknowledged_is_found() {
        assert_eq!(findings(|_| {}), (0, 0, 0));
        assert_eq!(findings(|seen| drop(seen.tickets.remove(0))), (1, 0, 0), "a ticket is gone");
        assert_eq!(
            findings(|seen| seen.tickets[0]["name"] = json!("Bob")),
            (1, 0, 0),
            "an edit is gone"
        );
        assert_eq!(
            findings(|seen| seen.tickets[1]["status"] = json!("completed")),
            (1, 0, 0),
            "a void is gone"
        );
        assert_eq!(
            findings(|seen| seen.tickets[0]["status"] = json!("failed")),
            (0, 0, 1),
            "a ticket failed"
        );
        assert_eq!(
            findings(|seen| seen.tickets[0]["number"] = json!(2)),
            (0, 1, 0),
            "a number twice"
        );
        assert_eq!(findings(|seen| seen.batches.clear()), (1, 0, 0), "an order is gone");
        assert_eq!(
            findings(|seen| drop(seen.batches.insert("batch".to_owned(), json!({})))),
            (0, 0, 1),
            "counters are wrong"
        );
        let back = json!({ "id": "c", "number": 3, "status": "completed" });
        assert_eq!(findings(|seen| seen.tickets.push(back)), (1, 0, 0), "a deleted ticket is back");
        let foreign = json!({ "id": "d", "number": 4, "status": "completed" });
        assert_eq!(
            findings(|seen| seen.tickets.push(foreign)),
            (0, 1, 0),
            "a ticket that nobody ordered"
        );
    }
}

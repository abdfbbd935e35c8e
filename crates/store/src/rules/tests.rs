//! Every change from every status, as a table.

use stampede_model::{BatchId, EventId, Pdf, TicketId};

use super::*;

const PENDING: TicketStatus = TicketStatus::Pending;
const COMPLETED: TicketStatus = TicketStatus::Completed;
const FAILED: TicketStatus = TicketStatus::Failed;
const VOID: TicketStatus = TicketStatus::Void;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(ms).unwrap()
}

fn pdf(fingerprint: &str) -> Pdf {
    Pdf::of(fingerprint.into(), b"%PDF")
}

fn ticket(status: TicketStatus) -> Ticket {
    Ticket {
        id: TicketId::generate(),
        event_id: EventId::generate(),
        batch_id: BatchId::generate(),
        owner: "ann".into(),
        index: 1,
        serial: 1,
        generation: 1,
        signing_key: Some(1),
        holder: Holder { name: "Zoe".into(), seat: Some("A-1".into()), ..Holder::default() },
        price: None,
        status,
        error: (status == FAILED).then(|| "no font".into()),
        pdf: (status == COMPLETED).then(|| pdf("f1")),
        processed_by: None,
        processed_at: None,
        created_at: at(1),
        updated_at: at(10),
    }
}

fn completion(ticket: &Ticket, fingerprint: &str) -> Completion {
    Completion {
        ticket_id: ticket.id,
        seen: ticket.updated_at,
        pdf: pdf(fingerprint),
        worker: "w".into(),
        at: at(20),
    }
}

fn failure(ticket: &Ticket) -> Failure {
    Failure { ticket_id: ticket.id, reason: "r".into(), worker: "w".into(), at: at(20) }
}

fn edit(ticket: &Ticket) -> TicketEdit {
    TicketEdit { holder: ticket.holder.clone(), price: None }
}

#[test]
fn every_change_from_every_status_leads_where_the_table_says() {
    let same_pdf = |t: &Ticket| completed(t, &completion(t, "f1"));
    let other_pdf = |t: &Ticket| completed(t, &completion(t, "f2"));
    let fail = |t: &Ticket| failed(t, &failure(t));
    let edit = |t: &Ticket| edited(t, &edit(t), t.updated_at, Some(2), at(20));
    let reissue = |t: &Ticket| reissued(t, Some(2), at(20));
    let void = |t: &Ticket| voided(t, at(20));
    let stale = |t: &Ticket| stale(t, at(20));
    type Change<'a> = &'a dyn Fn(&Ticket) -> Option<Ticket>;
    let table: [(&str, Change<'_>, [Option<TicketStatus>; 4]); 7] = [
        // From pending, completed, failed, void.
        ("same PDF", &same_pdf, [Some(COMPLETED), None, Some(COMPLETED), None]),
        ("other PDF", &other_pdf, [Some(COMPLETED), Some(COMPLETED), Some(COMPLETED), None]),
        ("fail", &fail, [Some(FAILED), None, None, None]),
        ("edit", &edit, [Some(PENDING), Some(PENDING), Some(PENDING), None]),
        ("reissue", &reissue, [Some(PENDING), Some(PENDING), Some(PENDING), None]),
        ("void", &void, [Some(VOID), Some(VOID), Some(VOID), None]),
        ("stale", &stale, [None, Some(PENDING), None, None]),
    ];
    for (name, change, expected) in table {
        for (from, to) in [PENDING, COMPLETED, FAILED, VOID].into_iter().zip(expected) {
            let before = ticket(from);
            let after = change(&before);
            assert_eq!(after.as_ref().map(|ticket| ticket.status), to, "{name} from {from:?}");
            let Some(after) = after else { continue };
            assert!(after.updated_at > before.updated_at, "{name} is a new version");
            assert_eq!(
                after.error.is_some(),
                to == Some(FAILED) || from == FAILED && to == Some(VOID)
            );
        }
    }
}

#[test]
fn a_completion_or_an_edit_of_another_version_is_not_taken() {
    let ticket = ticket(PENDING);
    for seen in [at(9), at(11)] {
        let late = Completion { seen, ..completion(&ticket, "f1") };
        assert_eq!(completed(&ticket, &late), None);
        assert_eq!(edited(&ticket, &edit(&ticket), seen, Some(2), at(20)), None);
    }
}

#[test]
fn another_name_or_seat_begins_a_generation_and_another_e_mail_or_price_does_not() {
    let ticket = ticket(COMPLETED);
    let holder = &ticket.holder;
    for (new, generation, key) in [
        (holder.clone(), 1, Some(1)),
        (Holder { email: Some("z@example.com".into()), ..holder.clone() }, 1, Some(1)),
        (Holder { phone: Some("+7999".into()), ..holder.clone() }, 1, Some(1)),
        (Holder { name: "Max".into(), ..holder.clone() }, 2, Some(7)),
        (Holder { seat: None, ..holder.clone() }, 2, Some(7)),
    ] {
        let edit = TicketEdit { holder: new, price: None };
        let after = edited(&ticket, &edit, ticket.updated_at, Some(7), at(20)).unwrap();
        assert_eq!((after.generation, after.signing_key), (generation, key), "{edit:?}");
    }
}

#[test]
fn a_version_is_later_than_the_last_one_whatever_the_clock_says() {
    assert_eq!(later(at(50), at(10)), at(50));
    assert_eq!(later(at(10), at(10)), at(11));
    assert_eq!(later(at(1), at(10)), at(11));
}

#[test]
fn counters_follow_every_move_of_a_ticket() {
    let start = Counters::of([PENDING, COMPLETED, FAILED, VOID]);
    assert_eq!(start, Counters { total: 4, completed: 1, failed: 1, voided: 1 });
    let all = [None, Some(PENDING), Some(COMPLETED), Some(FAILED), Some(VOID)];
    for from in all {
        for to in all {
            let rest = [PENDING, COMPLETED, FAILED, VOID];
            let before = Counters::of(rest.into_iter().chain(from));
            let after = Counters::of(rest.into_iter().chain(to));
            assert_eq!(before.moved(from, to), after, "{from:?} to {to:?}");
        }
    }
}

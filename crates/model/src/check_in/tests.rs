//! The table of admissions.

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

const BATCH: BatchId = BatchId::new(uuid::Uuid::nil());

fn ticket() -> Presented<'static> {
    Presented {
        status: TicketStatus::Completed,
        generation: 2,
        shown_generation: Some(2),
        key_is_revoked: false,
        is_blocked: false,
        batch: BATCH,
        seat: Some("A-12"),
    }
}

fn state(entered: u32, exited: u32) -> Admission {
    Admission { entered, exited }
}

fn entry(second: i64) -> Occasion {
    Occasion { kind: ScanKind::Entry, at: at(second) }
}

fn exit() -> Occasion {
    Occasion { kind: ScanKind::Exit, at: at(0) }
}

#[test]
fn every_reason_has_its_row() {
    use ScanResult as R;
    let main = AdmissionRules::main();
    let three = AdmissionRules { entries: 3, ..main.clone() };
    let unlimited = AdmissionRules { entries: 0, ..main.clone() };
    let reentry = AdmissionRules { reentry: true, ..main.clone() };
    let evening =
        AdmissionRules { opens_at: Some(at(10)), closes_at: Some(at(20)), ..main.clone() };
    let other_batch = AdmissionRules { batches: Some(vec![BatchId::generate()]), ..main.clone() };
    let this_batch = AdmissionRules { batches: Some(vec![BATCH]), ..main.clone() };
    let vip = AdmissionRules { seats: Some(vec!["VIP*".into(), "b-*".into()]), ..main.clone() };
    let row_a = AdmissionRules { seats: Some(vec!["a-*".into()]), ..main.clone() };
    let nobody = AdmissionRules { batches: Some(Vec::new()), ..main.clone() };
    let void = Presented { status: TicketStatus::Void, ..ticket() };
    let pending = Presented { status: TicketStatus::Pending, ..ticket() };
    let old = Presented { shown_generation: Some(1), ..ticket() };
    let newer = Presented { shown_generation: Some(3), ..ticket() };
    let by_id = Presented { shown_generation: None, ..ticket() };
    let revoked = Presented { key_is_revoked: true, ..ticket() };
    let blocked = Presented { is_blocked: true, ..ticket() };
    let nowhere = Presented { seat: None, ..ticket() };
    for (row, (ticket, rules, state, occasion, result)) in [
        (Some(ticket()), &main, state(0, 0), entry(0), R::Ok),
        (Some(pending), &main, state(0, 0), entry(0), R::Ok),
        (Some(by_id), &main, state(0, 0), entry(0), R::Ok),
        (None, &main, state(0, 0), entry(0), R::Unknown),
        (Some(void), &main, state(0, 0), entry(0), R::Void),
        (Some(old), &main, state(0, 0), entry(0), R::Superseded),
        (Some(newer), &main, state(0, 0), entry(0), R::Superseded),
        (Some(revoked), &main, state(0, 0), entry(0), R::RevokedKey),
        (Some(blocked), &main, state(1, 0), entry(0), R::Blocked),
        (Some(blocked), &main, state(1, 0), exit(), R::Ok),
        (Some(ticket()), &main, state(1, 0), entry(0), R::AlreadyRedeemed),
        (Some(ticket()), &main, state(1, 1), entry(0), R::AlreadyRedeemed),
        (Some(ticket()), &reentry, state(1, 0), entry(0), R::AlreadyRedeemed),
        (Some(ticket()), &reentry, state(1, 1), entry(0), R::Ok),
        (Some(ticket()), &reentry, state(2, 1), entry(0), R::AlreadyRedeemed),
        (Some(ticket()), &three, state(2, 0), entry(0), R::Ok),
        (Some(ticket()), &three, state(3, 1), entry(0), R::AlreadyRedeemed),
        (Some(ticket()), &unlimited, state(9_999, 0), entry(0), R::Ok),
        (Some(ticket()), &evening, state(0, 0), entry(9), R::NotYet),
        (Some(ticket()), &evening, state(0, 0), entry(10), R::Ok),
        (Some(ticket()), &evening, state(0, 0), entry(19), R::Ok),
        (Some(ticket()), &evening, state(0, 0), entry(20), R::Expired),
        (Some(ticket()), &other_batch, state(0, 0), entry(0), R::NotOnList),
        (Some(ticket()), &this_batch, state(0, 0), entry(0), R::Ok),
        (Some(ticket()), &vip, state(0, 0), entry(0), R::NotOnList),
        (Some(ticket()), &row_a, state(0, 0), entry(0), R::Ok),
        (Some(nowhere), &row_a, state(0, 0), entry(0), R::NotOnList),
        (Some(ticket()), &nobody, state(0, 0), entry(0), R::NotOnList),
        // Who is inside may leave, whatever became of the ticket.
        (Some(ticket()), &main, state(1, 0), exit(), R::Ok),
        (Some(void), &main, state(1, 0), exit(), R::Ok),
        (Some(old), &evening, state(1, 0), exit(), R::Ok),
        (Some(ticket()), &main, state(0, 0), exit(), R::NotInside),
        (Some(ticket()), &main, state(1, 1), exit(), R::NotInside),
        (None, &main, state(1, 0), exit(), R::Unknown),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(decide(ticket, rules, state, occasion), result, "row {row}");
    }
}

#[test]
fn undoing_never_leaves_an_exit_without_its_entry() {
    assert_eq!(state(1, 0).undone(ScanKind::Entry), Some(state(0, 0)));
    assert_eq!(state(1, 1).undone(ScanKind::Entry), None);
    assert_eq!(state(1, 1).undone(ScanKind::Exit), Some(state(1, 0)));
    assert_eq!(state(2, 1).undone(ScanKind::Entry), Some(state(1, 1)));
    assert!(!state(0, 0).passed(ScanKind::Exit).passed(ScanKind::Entry).is_inside());
}

#[test]
fn patterns_match_whole_seats_in_any_case() {
    for (pattern, seat, fits) in [
        ("A-1", "a-1", true),
        ("A-1", "A-12", false),
        ("A*", "a-12", true),
        ("*2", "A-12", true),
        ("*-*", "A-12", true),
        ("*-*-*", "A-12", false),
        ("*", "", true),
        ("", "", true),
        ("", "A", false),
        ("Ä*", "ä1", true),
        ("a*b*c", "aXXbYYbZc", true),
        ("a*b*c", "aXXcYY", false),
        ("VIP *", "vip 3", true),
    ] {
        let rules = AdmissionRules { seats: Some(vec![pattern.into()]), ..AdmissionRules::main() };
        assert_eq!(rules.includes(BATCH, Some(seat)), fits, "{pattern} {seat}");
    }
}

#[test]
fn words_are_read_back() {
    for result in ScanResult::ALL {
        assert_eq!(result.as_str().parse(), Ok(result));
        assert_eq!(serde_json::to_value(result).unwrap(), result.as_str());
    }
    for kind in [ScanKind::Entry, ScanKind::Exit] {
        assert_eq!(kind.as_str().parse(), Ok(kind));
    }
}

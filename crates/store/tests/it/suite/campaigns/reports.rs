//! Lists and reports of the ledger.

use stampede_model::campaign::{CampaignState, RecipientState, SkipReason, SuppressionReason};
use stampede_store::{
    AttemptEffect, CampaignMinute, CampaignTotal, CodeCount, NewRecipient, OTHER_CODES,
    RecipientFilter, Suppression,
};

use super::{campaign, claimed, import, queued, read, recipient, result, sent};
use crate::backends::Database;
use crate::suite::samples::at;

on_every_backend!(
    recipients_are_listed_by_position_state_code_and_address,
    failed_unknown_and_skipped_recipients_are_counted_by_code,
    codes_that_are_never_the_same_are_counted_together,
    attempts_are_counted_by_minute_and_listed_the_newest_first,
    empty_fields_are_found,
    recipients_without_a_message_are_found,
    campaigns_are_counted_by_state_with_their_unknown_recipients,
    addresses_that_were_suppressed_after_the_import_are_counted,
);

async fn recipients_are_listed_by_position_state_code_and_address(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 5).await;
    let effects = [AttemptEffect::Failed(None), AttemptEffect::Unknown];
    for (id, effect) in [ids[1], ids[3]].into_iter().zip(effects) {
        let run = claimed(&store, &running, id).await;
        store.record_runs(&[result(id, run, effect)], at(6)).await.unwrap();
    }
    let list = async |filter: RecipientFilter, after, limit| -> Vec<u64> {
        let found = store.recipients(running.id, &filter, after, limit).await.unwrap();
        found.iter().map(|recipient| recipient.position).collect()
    };
    let any = RecipientFilter::default;
    assert_eq!(list(any(), None, 2).await, [1, 2]);
    assert_eq!(list(any(), Some(2), 9).await, [3, 4, 5]);
    let state = |state| RecipientFilter { state: Some(state), ..any() };
    assert_eq!(list(state(RecipientState::Queued), None, 9).await, [1, 3, 5]);
    assert_eq!(list(state(RecipientState::Queued), Some(1), 1).await, [3]);
    assert_eq!(list(state(RecipientState::Failed), None, 9).await, [2]);
    assert_eq!(list(state(RecipientState::Pending), None, 9).await, [0; 0]);
    let code = |code: &str| RecipientFilter { code: Some(code.to_owned()), ..any() };
    assert_eq!(list(code("451 4.7.1"), None, 9).await, [2, 4]);
    let both = RecipientFilter { state: Some(RecipientState::Unknown), ..code("451 4.7.1") };
    assert_eq!(list(both, None, 9).await, [4]);
    let address = |part: &str| RecipientFilter { address: Some(part.to_owned()), ..any() };
    assert_eq!(list(address("0002"), None, 9).await, [3]);
    assert_eq!(list(address("%"), None, 9).await, [0; 0], "no pattern");
    store.put_back_recipients(&ids, at(7)).await.unwrap();
    assert_eq!(list(state(RecipientState::Pending), None, 9).await, [1, 3, 5]);
}

async fn failed_unknown_and_skipped_recipients_are_counted_by_code(db: Database) {
    let store = db.store().await;
    let new = campaign("ann");
    store.insert_campaign(&new).await.unwrap();
    let invalid = NewRecipient {
        skip: Some((SkipReason::Invalid, "no number".to_owned())),
        ..recipient("call me")
    };
    let piece = [recipient("+1"), recipient("+2"), recipient("+2"), recipient("+1"), invalid];
    import(&store, new.id, &piece).await;
    let rows = store.recipients(new.id, &RecipientFilter::default(), None, 2).await.unwrap();
    let start = stampede_model::campaign::CampaignChange::Start;
    let running = super::moved(&store, new.id, start, at(2)).await;
    store.feed_campaign(new.id, 9, at(3)).await.unwrap();
    for (row, effect) in rows.iter().zip([AttemptEffect::Failed(None), AttemptEffect::Unknown]) {
        let run = claimed(&store, &running, row.id).await;
        store.record_runs(&[result(row.id, run, effect)], at(6)).await.unwrap();
    }
    let counted = |state, code: &str, example: Option<&str>, recipients| CodeCount {
        state,
        code: code.to_owned(),
        example: example.map(str::to_owned),
        recipients,
    };
    let expected = [
        counted(RecipientState::Skipped, "duplicate", None, 2),
        counted(RecipientState::Failed, "451 4.7.1", Some("try again\\later"), 1),
        counted(RecipientState::Skipped, "invalid", Some("no number"), 1),
        counted(RecipientState::Unknown, "451 4.7.1", Some("try again\\later"), 1),
    ];
    assert_eq!(store.recipients_by_code(new.id).await.unwrap(), expected);
}

async fn codes_that_are_never_the_same_are_counted_together(db: Database) {
    let store = db.store().await;
    let (running, _) = queued(&store, 1_010).await;
    sqlx::any::install_default_drivers();
    let stranger = sqlx::AnyPool::connect(&db.url).await.unwrap();
    // Two with the code 550, 1,003 failed and five unknown ones with codes of their own.
    sqlx::query(
        "UPDATE campaign_recipients SET detail = 'why', state = CASE WHEN position > 1005 THEN 'unknown' ELSE 'failed' END, \
         code = CASE WHEN position <= 2 THEN '550' ELSE 'e' || CAST(10000 + position AS TEXT) END",
    )
    .execute(&stranger)
    .await
    .unwrap();
    let codes = store.recipients_by_code(running.id).await.unwrap();
    assert_eq!(codes.len(), 1_002, "a thousand, and the others of each state");
    let of = |state, code: &str, example: Option<&str>, recipients| CodeCount {
        state,
        code: code.to_owned(),
        example: example.map(str::to_owned),
        recipients,
    };
    use RecipientState::{Failed, Unknown};
    assert_eq!(codes[0], of(Failed, "550", Some("why"), 2));
    assert_eq!(codes[1], of(Failed, "e10003", Some("why"), 1));
    assert_eq!(codes[1_000], of(Failed, OTHER_CODES, None, 4));
    assert_eq!(codes[1_001], of(Unknown, OTHER_CODES, None, 5));
}

async fn attempts_are_counted_by_minute_and_listed_the_newest_first(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 4).await;
    assert_eq!(store.campaign_span(running.id).await.unwrap(), None);
    let minute = 60 - at(0).as_second() % 60;
    for (id, second, is_sent) in
        [(ids[0], 1, true), (ids[1], 2, false), (ids[2], 70, true), (ids[3], 71, true)]
    {
        let run = claimed(&store, &running, id).await;
        let retry = result(id, run, AttemptEffect::Retry(at(500)));
        let mut ended = if is_sent { sent(id, run, "m") } else { retry };
        ended.attempt.at = at(minute as u64 + second);
        store.record_runs(&[ended], at(200)).await.unwrap();
    }
    let first = (at(minute as u64).as_millisecond() / 60_000) * 60_000;
    let at_ms = |ms| stampede_model::Timestamp::from_millisecond(ms).unwrap();
    let minutes = [
        CampaignMinute { at: at_ms(first), sent: 1, failed_attempts: 1, unknown: 0 },
        CampaignMinute { at: at_ms(first + 60_000), sent: 2, failed_attempts: 0, unknown: 0 },
    ];
    assert_eq!(store.campaign_minutes(running.id, 60_000).await.unwrap(), minutes);
    let (began, ended) = store.campaign_span(running.id).await.unwrap().unwrap();
    assert_eq!((began, ended), (at(minute as u64 + 1), at(minute as u64 + 71)));
    let day = store.campaign_minutes(running.id, 24 * 3_600_000).await.unwrap();
    assert_eq!(day.iter().map(|day| (day.sent, day.failed_attempts)).collect::<Vec<_>>(), [(3, 1)]);
    let outcomes =
        store.last_outcomes(running.id, stampede_model::Timestamp::UNIX_EPOCH, 3).await.unwrap();
    let words: Vec<&str> = outcomes.iter().map(|(word, _)| word.as_str()).collect();
    assert_eq!(words, ["sent", "sent", "temporary"]);
    assert_eq!(outcomes[2].1.as_deref(), Some("451 4.7.1"));
    assert_eq!(read(&store, ids[1]).await.state, RecipientState::Pending);
}

async fn empty_fields_are_found(db: Database) {
    let store = db.store().await;
    let new = campaign("ann");
    store.insert_campaign(&new).await.unwrap();
    let with = |address: &str, fields: &[(&str, &str)]| NewRecipient {
        fields: fields.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        ..recipient(address)
    };
    let mut piece = vec![
        with("+1", &[("name", "Ann"), ("first name", "x"), ("a.b", "1")]),
        with("+2", &[("name", "")]),
        with("+3", &[("first name", "y"), ("a.b", "2")]),
        with("+1", &[]),
    ];
    piece
        .extend((0..12).map(|number| with(&format!("+9{number}"), &[("name", "N"), ("a.b", "3")])));
    import(&store, new.id, &piece).await;
    let fields = ["name", "first name", "a.b", "nowhere"].map(str::to_owned);
    let found = store.empty_fields(new.id, &fields).await.unwrap();
    let of = |name: &str| found.iter().find(|(field, ..)| field == name).cloned();
    assert_eq!(of("name").unwrap().2, [2, 3], "a duplicate gets nothing anyway");
    let (_, count, positions) = of("first name").unwrap();
    assert_eq!((count, positions.len(), positions[..2].to_vec()), (13, 10, vec![2, 5]));
    assert_eq!(of("a.b").unwrap().1, 1);
    assert_eq!(of("nowhere").unwrap().1, 15);
    assert_eq!(store.empty_fields(new.id, &[]).await.unwrap(), []);
}

async fn recipients_without_a_message_are_found(db: Database) {
    let store = db.store().await;
    let new = campaign("ann");
    store.insert_campaign(&new).await.unwrap();
    assert!(!store.has_messages(new.id).await.unwrap(), "there are no recipients");
    let silent = |number: u32| NewRecipient { message: None, ..recipient(&format!("+1{number}")) };
    let piece: Vec<NewRecipient> = (0..12).map(silent).chain([silent(0)]).collect();
    import(&store, new.id, &piece).await;
    let (count, positions) = store.without_message(new.id).await.unwrap();
    assert_eq!((count, positions), (12, (1..=10).collect()), "a duplicate gets nothing anyway");
    assert!(!store.has_messages(new.id).await.unwrap());
    import(&store, new.id, &[recipient("+2")]).await;
    assert!(store.has_messages(new.id).await.unwrap());
    assert_eq!(store.without_message(new.id).await.unwrap().0, 12);

    // Those that were sent to are of no interest.
    let (running, ids) = queued(&store, 1).await;
    assert!(store.has_messages(running.id).await.unwrap());
    let run = claimed(&store, &running, ids[0]).await;
    store.record_runs(&[sent(ids[0], run, "m")], at(6)).await.unwrap();
    assert!(!store.has_messages(running.id).await.unwrap());
}

async fn campaigns_are_counted_by_state_with_their_unknown_recipients(db: Database) {
    let store = db.store().await;
    assert_eq!(store.campaign_totals().await.unwrap(), []);
    for owner in ["ann", "bob"] {
        store.insert_campaign(&campaign(owner)).await.unwrap();
    }
    let (running, ids) = queued(&store, 3).await;
    for id in &ids[..2] {
        let run = claimed(&store, &running, *id).await;
        store.record_runs(&[result(*id, run, AttemptEffect::Unknown)], at(6)).await.unwrap();
    }
    let draft = CampaignTotal { state: CampaignState::Draft, campaigns: 2, unknown: 0 };
    let running = CampaignTotal { state: CampaignState::Running, campaigns: 1, unknown: 2 };
    assert_eq!(store.campaign_totals().await.unwrap(), [draft, running]);
}

async fn addresses_that_were_suppressed_after_the_import_are_counted(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 4).await;
    let count = async || store.suppressed_recipients(running.id).await.unwrap();
    assert_eq!(count().await, 0);
    let rows = store.recipients(running.id, &RecipientFilter::default(), None, 9).await.unwrap();
    let suppression = |owner: &str, account, row: usize| Suppression {
        owner: owner.to_owned(),
        account,
        address: rows[row].address.clone(),
        reason: SuppressionReason::Manual,
        since: at(1),
        by: "ann".to_owned(),
    };
    let console = Some(running.account.clone());
    let suppressions = [
        suppression("ann", None, 0),
        suppression("ann", console.clone(), 0),
        suppression(Suppression::EVERYBODY, console, 1),
        suppression("bob", None, 2),
        suppression("ann", Some("other".parse().unwrap()), 2),
        suppression("ann", None, 3),
    ];
    store.add_suppressions(&suppressions).await.unwrap();
    assert_eq!(count().await, 3, "each recipient once, and only suppressions that hold");
    // The claim skips one of them: it is not open any more.
    let claim = super::claim(&running, ids[0]);
    let claimed = store.claim_recipients(&[claim], at(4)).await.unwrap();
    assert_eq!(claimed, [stampede_store::Claimed::OptedOut]);
    assert_eq!(count().await, 2);
}

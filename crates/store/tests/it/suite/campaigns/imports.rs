//! Recipients that come.

use std::collections::BTreeSet;
use std::time::Duration;

use stampede_model::campaign::{
    AccountId, CampaignChange, CampaignState, RecipientState, SkipReason, SuppressionReason,
};
use stampede_model::{BatchId, CampaignId, EventId, RecipientId, TicketId};
use stampede_store::{FIELD_NAMES_KEPT, Import, Imported, Moved, NewRecipient, Store, Suppression};

use super::{
    all, assert_counts, campaign, campaign_now, change, import, moved, queued, recipient,
    recipients, states,
};
use crate::backends::Database;
use crate::suite::samples::at;

on_every_backend!(
    recipients_keep_their_fields_and_their_order,
    an_address_comes_once_and_a_second_one_names_the_line_of_the_first,
    two_tickets_of_one_address_are_two_recipients,
    an_invalid_address_is_kept_and_skipped,
    a_mail_address_is_one_recipient_in_every_spelling,
    a_suppressed_address_is_kept_and_skipped,
    what_is_known_of_recipients_decides_as_their_import_does,
    a_campaign_tells_the_order_that_all_of_its_guests_are_of,
    a_campaign_that_is_being_filled_cannot_start,
    only_one_import_is_open,
    an_import_that_is_undone_leaves_nothing,
    the_names_of_fields_are_known_when_their_import_has_ended,
    a_dead_import_is_undone_when_the_next_one_begins_and_by_the_reconciler,
    a_campaign_that_runs_or_has_ended_takes_no_recipients,
);

static NO_FIELDS: BTreeSet<String> = BTreeSet::new();

async fn draft(store: &Store) -> CampaignId {
    let new = campaign("ann");
    store.insert_campaign(&new).await.unwrap();
    new.id
}

fn on_line(line: u64, address: &str) -> NewRecipient {
    NewRecipient { line: Some(line), ..recipient(address) }
}

async fn recipients_keep_their_fields_and_their_order(db: Database) {
    let store = db.store().await;
    let id = draft(&store).await;
    let one = NewRecipient {
        line: Some(2),
        time_zone: Some("Asia/Tokyo".to_owned()),
        ticket: Some(TicketId::generate()),
        ..recipient("zoë@example.com")
    };
    let mut two = recipient("+4930123");
    (two.message, two.fields) = (None, [].into());
    let done = import(&store, id, &[one.clone(), two.clone()]).await;
    assert_eq!(done, Imported { added: 2, ..Imported::default() });
    import(&store, id, &recipients(1)).await;
    let found = all(&store, id).await;
    assert_eq!(found.iter().map(|it| it.position).collect::<Vec<_>>(), [1, 2, 3]);
    let first = &found[0];
    assert_eq!((first.id, first.campaign, &first.address), (one.id, id, &one.address));
    assert_eq!((&first.fields, &first.message), (&one.fields, &one.message));
    assert_eq!((&first.time_zone, first.ticket, first.line), (&one.time_zone, one.ticket, Some(2)));
    assert_eq!((first.state, first.attempts, first.next_at), (RecipientState::Pending, 0, None));
    assert_eq!((first.updated_at, first.sent_at), (at(1), None));
    assert_eq!((&found[1].fields, &found[1].message), (&two.fields, &None));
    assert_eq!(campaign_now(&store, id).await.counts.pending, 3);
}

async fn an_address_comes_once_and_a_second_one_names_the_line_of_the_first(db: Database) {
    let store = db.store().await;
    let id = draft(&store).await;
    let piece = [on_line(2, "+491"), on_line(3, "+492"), on_line(4, "+491")];
    let first = import(&store, id, &piece).await;
    assert_eq!((first.added, &first.duplicates[..]), (2, &[(Some(4), Some(2))][..]));
    // Those of earlier imports count, too.
    let piece = [on_line(9, "+492"), on_line(10, "+493"), recipient("+493")];
    let more = import(&store, id, &piece).await;
    assert_eq!(more.added, 1);
    assert_eq!(more.duplicates, [(Some(9), Some(3)), (None, Some(10))]);
    let found = all(&store, id).await;
    assert_eq!(found.len(), 6, "none is silently dropped");
    assert_eq!(found[2].skipped, Some(SkipReason::Duplicate));
    assert_eq!(found[2].detail.as_deref(), Some("the same address as line 2"));
    let counts = campaign_now(&store, id).await.counts;
    assert_eq!((counts.pending, counts.skipped), (3, 3));
    let other = draft(&store).await;
    assert_eq!(import(&store, other, &[recipient("+491")]).await.added, 1, "another campaign");
    assert_counts(&store).await;
}

async fn two_tickets_of_one_address_are_two_recipients(db: Database) {
    let store = db.store().await;
    let id = draft(&store).await;
    let ticket = TicketId::generate();
    let with = |ticket| NewRecipient { ticket: Some(ticket), ..recipient("ann@example.com") };
    let done = import(&store, id, &[with(ticket), with(TicketId::generate()), with(ticket)]).await;
    assert_eq!((done.added, done.duplicates.len()), (2, 1));
}

async fn a_mail_address_is_one_recipient_in_every_spelling(db: Database) {
    let store = db.store().await;
    let id = draft(&store).await;
    let stop = |address: &str| Suppression {
        owner: "ann".to_owned(),
        account: None,
        address: address.to_owned(),
        reason: SuppressionReason::Stop,
        since: at(0),
        by: "ann".to_owned(),
    };
    store.add_suppressions(&[stop("Eve@example.org")]).await.unwrap();
    let piece = ["Bob@example.org", "bob@example.org", "eve@example.org"].map(recipient);
    let done = import(&store, id, &piece).await;
    assert_eq!((done.added, done.duplicates.len(), done.suppressed), (1, 1, 1));
    assert_eq!(all(&store, id).await[0].address, "Bob@example.org", "it is written as it came");
    let again = import(&store, id, &["BOB@example.org"].map(recipient)).await;
    assert_eq!((again.added, again.duplicates.len()), (0, 1));
    store.add_suppressions(&[stop("bob@example.org")]).await.unwrap();
    assert_eq!(store.suppressed_recipients(id).await.unwrap(), 1);
}

async fn an_invalid_address_is_kept_and_skipped(db: Database) {
    let store = db.store().await;
    let id = draft(&store).await;
    let invalid = || NewRecipient {
        skip: Some((SkipReason::Invalid, "no telephone number".to_owned())),
        ..recipient("call me")
    };
    let done = import(&store, id, &[invalid(), invalid(), recipient("+491")]).await;
    assert_eq!((done.added, done.invalid, done.duplicates.len()), (1, 2, 0));
    let found = all(&store, id).await;
    assert_eq!(found[1].skipped, Some(SkipReason::Invalid));
    assert_eq!(found[1].detail.as_deref(), Some("no telephone number"));
}

async fn a_suppressed_address_is_kept_and_skipped(db: Database) {
    let store = db.store().await;
    let id = draft(&store).await;
    let suppression = |owner: &str, account: Option<AccountId>, address: &str| Suppression {
        owner: owner.to_owned(),
        account,
        address: address.to_owned(),
        reason: SuppressionReason::Stop,
        since: at(0),
        by: "telegram".to_owned(),
    };
    let suppressions = [
        suppression("ann", Some(AccountId::console()), "+491"),
        suppression("ann", None, "+492"),
        suppression("ann", Some("other".parse().unwrap()), "+493"),
        suppression("bob", None, "+494"),
        suppression(Suppression::EVERYBODY, Some(AccountId::console()), "+495"),
    ];
    store.add_suppressions(&suppressions).await.unwrap();
    let piece = ["+491", "+492", "+493", "+494", "+491", "+495"].map(recipient);
    let done = import(&store, id, &piece).await;
    assert_eq!((done.added, done.suppressed, done.duplicates.len()), (2, 3, 1));
    let found = all(&store, id).await;
    assert_eq!(found[0].skipped, Some(SkipReason::OptedOut));
    assert_eq!(found[1].skipped, Some(SkipReason::OptedOut));
    assert_eq!(found[4].skipped, Some(SkipReason::Duplicate));
    assert_eq!(found[5].skipped, Some(SkipReason::OptedOut));
}

async fn what_is_known_of_recipients_decides_as_their_import_does(db: Database) {
    let store = db.store().await;
    let id = draft(&store).await;
    let ticket = TicketId::generate();
    let guest = NewRecipient { ticket: Some(ticket), ..recipient("ann@example.com") };
    import(&store, id, &[on_line(2, "+491"), on_line(3, "+492"), guest.clone()]).await;
    let suppression = Suppression {
        owner: "ann".to_owned(),
        account: None,
        address: "+493".to_owned(),
        reason: SuppressionReason::Stop,
        since: at(0),
        by: "ann".to_owned(),
    };
    store.add_suppressions(&[suppression]).await.unwrap();
    let invalid = NewRecipient {
        skip: Some((SkipReason::Invalid, "no telephone number".to_owned())),
        ..on_line(5, "call me")
    };
    let piece = [
        on_line(1, "+492"),
        on_line(2, "+493"),
        on_line(3, "+494"),
        on_line(4, "+494"),
        invalid,
        NewRecipient { id: RecipientId::generate(), ..guest },
        recipient("ann@example.com"),
    ];
    let before = all(&store, id).await.len();
    let mut known = store.known_recipients(id, &piece).await.unwrap();
    let mut dry = Imported::default();
    for recipient in &piece {
        dry.count(recipient.line, known.judge(recipient));
    }
    assert_eq!(all(&store, id).await.len(), before, "nothing is written");
    assert_eq!((dry.added, dry.suppressed, dry.invalid), (2, 1, 1));
    assert_eq!(dry.duplicates, [(Some(1), Some(3)), (Some(4), Some(3)), (None, None)]);
    assert_eq!(import(&store, id, &piece).await, dry);
}

async fn a_campaign_tells_the_order_that_all_of_its_guests_are_of(db: Database) {
    let store = db.store().await;
    let new = stampede_store::Campaign { event: None, batch: None, ..campaign("ann") };
    store.insert_campaign(&new).await.unwrap();
    let id = new.id;
    import(&store, id, &recipients(1)).await;
    let (event, other) = (EventId::generate(), EventId::generate());
    let (batch, second) = (BatchId::generate(), BatchId::generate());
    let mut number = 0;
    for (of, batch, told) in [
        (event, Some(batch), (Some(event), Some(batch))),
        (event, Some(batch), (Some(event), Some(batch))),
        (event, Some(second), (Some(event), None)),
        (event, Some(batch), (Some(event), None)),
        (other, None, (None, None)),
        (event, None, (None, None)),
    ] {
        let open = RecipientId::generate();
        store.begin_import(id, open, at(1), at(0)).await.unwrap();
        number += 1;
        let address = format!("guest-{number}@example.com");
        let guest = NewRecipient { ticket: Some(TicketId::generate()), ..recipient(&address) };
        store.import_recipients(id, open, &[guest], at(1)).await.unwrap();
        assert!(store.note_guests(id, open, of, batch).await.unwrap());
        assert!(store.end_import(id, open, &NO_FIELDS).await.unwrap());
        let now = campaign_now(&store, id).await;
        assert_eq!((now.event, now.batch), told, "{number}");
        assert_eq!(now.updated_at, new.updated_at, "no person changed it");
    }
    assert!(!store.note_guests(id, RecipientId::generate(), event, None).await.unwrap());
}

async fn a_campaign_that_is_being_filled_cannot_start(db: Database) {
    let store = db.store().await;
    let id = draft(&store).await;
    let open = RecipientId::generate();
    assert_eq!(store.begin_import(id, open, at(1), at(0)).await.unwrap(), Import::Begun);
    assert_eq!(campaign_now(&store, id).await.importing, Some(at(1)));
    for step in [CampaignChange::Start, CampaignChange::Schedule] {
        let answer = store.move_campaign(&change(id, step, at(2))).await.unwrap();
        assert_eq!(answer, Moved::Importing);
    }
    store.import_recipients(id, open, &recipients(1), at(3)).await.unwrap().unwrap();
    assert_eq!(campaign_now(&store, id).await.importing, Some(at(3)), "it goes on");
    assert!(store.end_import(id, open, &NO_FIELDS).await.unwrap());
    assert!(!store.end_import(id, open, &NO_FIELDS).await.unwrap());
    let late = store.import_recipients(id, open, &recipients(1), at(4)).await.unwrap();
    assert_eq!(late, None);
    moved(&store, id, CampaignChange::Start, at(5)).await;

    // Its time comes while it is being filled: it starts when it is complete.
    let id = draft(&store).await;
    let schedule = stampede_store::Move {
        start_at: Some(at(10)),
        ..change(id, CampaignChange::Schedule, at(6))
    };
    store.move_campaign(&schedule).await.unwrap();
    store.begin_import(id, open, at(7), at(0)).await.unwrap();
    store.import_recipients(id, open, &recipients(1), at(7)).await.unwrap();
    assert!(!store.campaigns_to_feed(at(11), None, 9).await.unwrap().contains(&id));
    assert!(!store.feed_campaign(id, 9, at(11)).await.unwrap().is_running);
    store.end_import(id, open, &NO_FIELDS).await.unwrap();
    assert!(store.campaigns_to_feed(at(11), None, 9).await.unwrap().contains(&id));
    assert_eq!(store.feed_campaign(id, 9, at(11)).await.unwrap().queued.len(), 1);
}

async fn only_one_import_is_open(db: Database) {
    let store = db.store().await;
    let id = draft(&store).await;
    let (one, two) = (RecipientId::generate(), RecipientId::generate());
    let others = db.handle().await;
    let both = tokio::join!(
        store.begin_import(id, one, at(1), at(0)),
        others.begin_import(id, two, at(1), at(0))
    );
    let begun = [both.0.unwrap(), both.1.unwrap()];
    assert!(begun.contains(&Import::Begun) && begun.contains(&Import::Busy), "{begun:?}");
    let loser = if begun[0] == Import::Busy { one } else { two };
    assert_eq!(store.import_recipients(id, loser, &recipients(1), at(2)).await.unwrap(), None);
    assert!(!store.end_import(id, loser, &NO_FIELDS).await.unwrap());
}

async fn an_import_that_is_undone_leaves_nothing(db: Database) {
    let store = db.store().await;
    let id = draft(&store).await;
    import(&store, id, &recipients(3)).await;
    let open = RecipientId::generate();
    store.begin_import(id, open, at(2), at(0)).await.unwrap();
    let more: Vec<NewRecipient> =
        (0..5_003).map(|number| recipient(&format!("+1{number}"))).collect();
    store.import_recipients(id, open, &more, at(3)).await.unwrap();
    assert_eq!(campaign_now(&store, id).await.counts.pending, 5_006);
    store.undo_import(id, RecipientId::generate()).await.unwrap();
    assert_eq!(campaign_now(&store, id).await.counts.pending, 5_006, "another import's name");
    store.undo_import(id, open).await.unwrap();
    let after = campaign_now(&store, id).await;
    assert_eq!((after.counts.pending, after.importing), (3, None));
    assert_eq!(all(&store, id).await.len(), 3);
    assert!(!store.end_import(id, open, &NO_FIELDS).await.unwrap());
    // Positions and addresses are free again.
    assert_eq!(import(&store, id, &more[..1]).await.added, 1);
    assert_eq!(all(&store, id).await[3].position, 4);
    assert_counts(&store).await;
}

async fn the_names_of_fields_are_known_when_their_import_has_ended(db: Database) {
    let store = db.store().await;
    let id = draft(&store).await;
    let names = |names: &[&str]| -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    };
    let known = async || store.recipient_fields(id).await.unwrap();
    let begin = async || {
        let open = RecipientId::generate();
        assert_eq!(store.begin_import(id, open, at(1), at(0)).await.unwrap(), Import::Begun);
        open
    };
    let open = begin().await;
    store.import_recipients(id, open, &recipients(2), at(1)).await.unwrap().unwrap();
    assert_eq!(known().await, names(&[]), "it has not ended");
    assert!(store.end_import(id, open, &names(&["name", "имя \"x\""])).await.unwrap());
    assert_eq!(known().await, names(&["name", "имя \"x\""]));
    assert!(
        !store.end_import(id, open, &names(&["late"])).await.unwrap(),
        "it is not open any more"
    );
    let undone = begin().await;
    store.undo_import(id, undone).await.unwrap();
    assert!(!store.end_import(id, undone, &names(&["undone"])).await.unwrap());
    let second = begin().await;
    assert!(store.end_import(id, second, &names(&["name", "seat"])).await.unwrap());
    assert_eq!(known().await, names(&["name", "seat", "имя \"x\""]));
    assert_eq!(store.recipient_fields(draft(&store).await).await.unwrap(), names(&[]));

    // Keys that are data, not names: the table does not grow with them.
    for import in 0..3 {
        let many = (0..FIELD_NAMES_KEPT).map(|number| format!("{import}-{number}")).collect();
        let open = begin().await;
        assert!(store.end_import(id, open, &many).await.unwrap());
    }
    let kept = known().await.len();
    assert!((FIELD_NAMES_KEPT..2 * FIELD_NAMES_KEPT).contains(&kept), "{kept}");
    store.delete_campaign_as_seen(id, None).await.unwrap();
    while store.forget_campaigns(9).await.unwrap() > 0 {}
    assert_eq!(known().await, names(&[]));
}

async fn a_dead_import_is_undone_when_the_next_one_begins_and_by_the_reconciler(db: Database) {
    let store = db.store().await;
    let id = draft(&store).await;
    let [dead, next, last] = [(); 3].map(|()| RecipientId::generate());
    store.begin_import(id, dead, at(1), at(0)).await.unwrap();
    store.import_recipients(id, dead, &recipients(4), at(2)).await.unwrap();
    let minute = Duration::from_secs(60);
    let begun = store.begin_import(id, next, at(61), at(61) - minute).await.unwrap();
    assert_eq!(begun, Import::Busy, "it went on less than a minute ago");
    let begun = store.begin_import(id, next, at(63), at(63) - minute).await.unwrap();
    assert_eq!(begun, Import::Begun);
    assert_eq!(states(&store, id).await, []);
    assert_eq!(store.import_recipients(id, dead, &recipients(1), at(63)).await.unwrap(), None);
    store.import_recipients(id, next, &recipients(2), at(64)).await.unwrap();

    assert_eq!(store.undo_dead_imports(at(64)).await.unwrap(), 0);
    assert_eq!(store.undo_dead_imports(at(65)).await.unwrap(), 1);
    assert_eq!(states(&store, id).await, []);
    assert_eq!(store.begin_import(id, last, at(66), at(6)).await.unwrap(), Import::Begun);
    assert_counts(&store).await;
}

async fn a_campaign_that_runs_or_has_ended_takes_no_recipients(db: Database) {
    let store = db.store().await;
    let (running, _) = queued(&store, 1).await;
    let id = running.id;
    let begin =
        async || store.begin_import(id, RecipientId::generate(), at(5), at(0)).await.unwrap();
    assert_eq!(begin().await, Import::WrongState);
    moved(&store, id, CampaignChange::Pause, at(6)).await;
    assert_eq!(import(&store, id, &[recipient("+1")]).await.added, 1, "a paused one does");
    let open = RecipientId::generate();
    store.begin_import(id, open, at(6), at(0)).await.unwrap();
    let cancelled = moved(&store, id, CampaignChange::Cancel, at(7)).await;
    assert_eq!(cancelled.state, CampaignState::Cancelled);
    let late = store.import_recipients(id, open, &[recipient("+2")], at(8)).await.unwrap();
    assert_eq!(late, None, "nothing is left open in a cancelled campaign");
    store.undo_import(id, open).await.unwrap();
    assert_eq!(begin().await, Import::WrongState);
    let none = store.begin_import(CampaignId::generate(), open, at(9), at(0)).await.unwrap();
    assert_eq!(none, Import::NotFound);
}

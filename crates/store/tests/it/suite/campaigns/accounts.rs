//! Accounts.

use stampede_model::Timestamp;
use stampede_model::campaign::{AccountId, CampaignChange, CampaignState, Channel, Pacing};
use stampede_store::{
    Account, AccountDeleted, AccountFilter, AccountWritten, Blocked, Campaign, Claimed, Fed, Move,
    Moved, Slice, Sorted, Store, TicketSecret, Versioned,
};

use super::{all, campaign, campaign_now, change, claim, import, moved, queued, recipients};
use crate::backends::Database;
use crate::suite::samples::at;

on_every_backend!(
    the_console_is_there_from_the_start_and_stays,
    an_account_keeps_its_fields_and_its_credentials_are_encrypted,
    an_id_belongs_to_one_owner_for_ever,
    a_user_has_no_more_accounts_than_allowed_also_when_two_are_made_at_once,
    accounts_are_listed_by_those_who_may_use_them,
    a_blocked_account_pauses_its_running_campaigns,
    an_account_that_was_changed_since_is_not_blocked,
    through_an_account_that_may_not_send_nothing_starts_and_nothing_is_claimed,
    a_scheduled_campaign_of_a_blocked_account_becomes_a_draft_at_its_time,
    a_running_campaign_of_a_deleted_account_is_paused,
    an_account_in_use_is_not_deleted,
    a_replaced_ticket_secret_blocks_accounts_until_their_credentials_are_entered_again,
);

pub(crate) fn account(id: &str, owner: Option<&str>) -> Account {
    Account {
        id: id.parse().unwrap(),
        owner: owner.map(str::to_owned),
        name: "Ann's \"bot\"".to_owned(),
        channel: Channel::Telegram,
        settings: "{\"chat\":\"Ж\"}".to_owned(),
        pacing: Pacing { daily_cap: Some(250), ..Pacing::default() },
        country: Some("DE".to_owned()),
        time_zone: Some("Europe/Berlin".to_owned()),
        blocked: None,
        first_sent_at: None,
        created_at: at(0),
        updated_at: at(0),
    }
}

async fn made(store: &Store, id: &str, owner: &str) -> Account {
    let account = account(id, Some(owner));
    let written = store.insert_account(&account, b"bot token", 50).await.unwrap();
    assert_eq!(written, AccountWritten::Done);
    account
}

async fn now(store: &Store, id: &AccountId) -> Account {
    store.account(id).await.unwrap().unwrap()
}

async fn the_console_is_there_from_the_start_and_stays(db: Database) {
    let store = db.store().await;
    let console = now(&store, &AccountId::console()).await;
    assert_eq!((console.channel, console.owner.as_deref()), (Channel::Console, None));
    assert!(console.created_at > at(0) - std::time::Duration::from_secs(86_400 * 365));
    assert_eq!(store.account_credentials(&console.id).await.unwrap(), None);
    let deleted = store.delete_account_as_seen(&console.id, None).await.unwrap();
    assert_eq!(deleted, AccountDeleted::InUse);
    let taken = store.insert_account(&account("console", Some("ann")), b"", 9).await.unwrap();
    assert_eq!(taken, AccountWritten::Taken);
}

async fn an_account_keeps_its_fields_and_its_credentials_are_encrypted(db: Database) {
    let store = db.store().await;
    let made = made(&store, "ann.bot", "ann").await;
    assert_eq!(store.account(&made.id).await.unwrap(), Some(made.clone()));
    let sealed = store.sealed_credentials(&made.id).await.unwrap().unwrap();
    assert!(!sealed.contains("token"));
    assert_eq!(store.account_credentials(&made.id).await.unwrap().unwrap(), b"bot token");
    assert!(db.reader().await.account_credentials(&made.id).await.is_err(), "without a secret");

    let changed = Account {
        name: "Other".to_owned(),
        pacing: Pacing::default(),
        country: None,
        time_zone: None,
        updated_at: at(5),
        // Not for this call to change.
        owner: Some("eve".to_owned()),
        channel: Channel::Smtp,
        ..made.clone()
    };
    let late = store.update_account_as_seen(&changed, None, Some(at(4))).await.unwrap();
    assert_eq!(late, Versioned::ChangedMeanwhile);
    let written = store.update_account_as_seen(&changed, None, Some(at(0))).await.unwrap();
    let expected = Account { owner: made.owner, channel: made.channel, ..changed };
    assert_eq!(written, Versioned::Done(expected.clone()));
    assert_eq!(store.account_credentials(&expected.id).await.unwrap().unwrap(), b"bot token");
    store.update_account_as_seen(&expected, Some(b"new token"), None).await.unwrap();
    assert_eq!(store.account_credentials(&expected.id).await.unwrap().unwrap(), b"new token");
    let nobody = account("nobody", None);
    let none = store.update_account_as_seen(&nobody, None, None).await.unwrap();
    assert_eq!(none, Versioned::NotFound);
}

async fn an_id_belongs_to_one_owner_for_ever(db: Database) {
    let store = db.store().await;
    let ann = made(&store, "bot", "ann").await;
    let of_bob = account("bot", Some("bob"));
    let taken = store.insert_account(&of_bob, b"x", 50).await.unwrap();
    assert_eq!(taken, AccountWritten::Taken);
    let wrong = store.delete_account_as_seen(&ann.id, Some(at(7))).await.unwrap();
    assert_eq!(wrong, AccountDeleted::ChangedMeanwhile);
    let deleted = store.delete_account_as_seen(&ann.id, Some(at(0))).await.unwrap();
    assert_eq!(deleted, AccountDeleted::Gone);
    assert_eq!(store.account(&ann.id).await.unwrap(), None);
    assert_eq!(store.account_credentials(&ann.id).await.unwrap(), None);
    let again = store.delete_account_as_seen(&ann.id, None).await.unwrap();
    assert_eq!(again, AccountDeleted::NotFound);
    // Receipts for its campaigns must not come to somebody else.
    let taken = store.insert_account(&of_bob, b"x", 50).await.unwrap();
    assert_eq!(taken, AccountWritten::Taken);
    // The addresses of its campaigns are chats.
    let used = Campaign { account: ann.id.clone(), ..campaign("ann") };
    store.insert_campaign(&used).await.unwrap();
    let mail = Account { channel: Channel::Smtp, ..account("bot", Some("ann")) };
    let taken = store.insert_account(&mail, b"x", 50).await.unwrap();
    assert_eq!(taken, AccountWritten::Taken);
    made(&store, "bot", "ann").await;
    store.delete_account_as_seen(&ann.id, None).await.unwrap();
    store.delete_campaign_as_seen(used.id, None).await.unwrap();
    assert_eq!(store.insert_account(&mail, b"x", 50).await.unwrap(), AccountWritten::Done);
}

async fn a_user_has_no_more_accounts_than_allowed_also_when_two_are_made_at_once(db: Database) {
    let store = db.store().await;
    let others = db.handle().await;
    let (one, two) = (account("one", Some("ann")), account("two", Some("ann")));
    let both =
        tokio::join!(store.insert_account(&one, b"s", 1), others.insert_account(&two, b"s", 1));
    let mut both = [both.0.unwrap(), both.1.unwrap()];
    both.sort_by_key(|written| *written == AccountWritten::TooMany);
    assert_eq!(both, [AccountWritten::Done, AccountWritten::TooMany]);
    assert_eq!(made(&store, "of-bob", "bob").await.owner.as_deref(), Some("bob"));
}

async fn accounts_are_listed_by_those_who_may_use_them(db: Database) {
    let store = db.store().await;
    made(&store, "b-ann", "ann").await;
    made(&store, "a-bob", "bob").await;
    let mail =
        Account { channel: Channel::Smtp, created_at: at(50), ..account("c-ann", Some("ann")) };
    store.insert_account(&mail, b"", 50).await.unwrap();
    let listed = async |filter: AccountFilter, slice: Slice<AccountId>| -> Vec<String> {
        store.accounts(&filter, &slice).await.unwrap().iter().map(|it| it.id.to_string()).collect()
    };
    let all = |limit| Slice::new(Sorted::OldestFirst, None, limit);
    let any = AccountFilter::default;
    assert_eq!(listed(any(), all(9)).await, ["a-bob", "b-ann", "c-ann", "console"]);
    let of_ann = || AccountFilter { usable_by: Some("ann".to_owned()), ..any() };
    assert_eq!(listed(of_ann(), all(9)).await, ["b-ann", "c-ann", "console"]);
    assert_eq!(listed(of_ann(), all(1)).await, ["b-ann"]);
    let after: AccountId = "b-ann".parse().unwrap();
    let rest = Slice::new(Sorted::OldestFirst, Some(after.clone()), 9);
    assert_eq!(listed(of_ann(), rest).await, ["c-ann", "console"]);
    let before = Slice::new(Sorted::NewestFirst, Some(after), 9);
    assert_eq!(listed(any(), before).await, ["a-bob"]);
    let mails = AccountFilter { channel: Some(Channel::Smtp), ..any() };
    assert_eq!(listed(mails, all(9)).await, ["c-ann"]);
    let dated = Slice { from: Some(at(1)), to: Some(at(60)), ..all(9) };
    let console = now(&store, &AccountId::console()).await.created_at;
    let with_console = console >= at(1) && console < at(60);
    let found = listed(any(), dated).await;
    assert_eq!(found.iter().filter(|id| *id != "console").collect::<Vec<_>>(), ["c-ann"]);
    assert_eq!(found.len(), 1 + usize::from(with_console));
}

/// A running campaign of an account, with recipients that are queued.
async fn running(store: &Store, account: &AccountId) -> Campaign {
    let new = Campaign { account: account.clone(), ..campaign("ann") };
    store.insert_campaign(&new).await.unwrap();
    import(store, new.id, &recipients(2)).await;
    let running = moved(store, new.id, CampaignChange::Start, at(2)).await;
    store.feed_campaign(new.id, 10, at(3)).await.unwrap();
    running
}

async fn a_blocked_account_pauses_its_running_campaigns(db: Database) {
    let store = db.store().await;
    let bot = made(&store, "bot", "ann").await;
    let (one, two) = (running(&store, &bot.id).await, running(&store, &bot.id).await);
    let (of_console, _) = queued(&store, 1).await;
    let paused = store.block_account(&bot.id, "401 wrong token", None, at(5)).await.unwrap();
    let stopped: Vec<_> =
        paused.stopped.iter().map(|it| (it.campaign, it.taken_back.len())).collect();
    assert_eq!((paused.is_new, stopped), (true, vec![(one.id, 2), (two.id, 2)]));
    let again = store.block_account(&bot.id, "401 wrong token", None, at(6)).await.unwrap();
    assert_eq!(again, Blocked::default(), "it was blocked already");
    let blocked = now(&store, &bot.id).await;
    assert_eq!(blocked.blocked.as_deref(), Some("401 wrong token"));
    assert_eq!(blocked.updated_at, bot.updated_at, "no person changed it");
    let after = campaign_now(&store, one.id).await;
    assert_eq!((after.state, after.counts.pending), (CampaignState::Paused, 2));
    assert_eq!(after.reason.as_deref(), Some("401 wrong token"));
    assert_eq!(campaign_now(&store, of_console.id).await.state, CampaignState::Running);

    let renamed = Account { name: "Other".to_owned(), ..blocked.clone() };
    let written = store.update_account_as_seen(&renamed, None, None).await.unwrap().done();
    assert!(written.unwrap().blocked.is_some(), "another name does not help");
    let repaired = Account { settings: "{}".to_owned(), ..blocked };
    let written = store.update_account_as_seen(&repaired, None, None).await.unwrap().done();
    assert_eq!(written.unwrap().blocked, None);
    store.block_account(&bot.id, "again", None, at(7)).await.unwrap();
    let written = store.update_account_as_seen(&repaired, Some(b"t"), None).await.unwrap().done();
    assert_eq!(written.unwrap().blocked, None);
}

async fn an_account_that_was_changed_since_is_not_blocked(db: Database) {
    let store = db.store().await;
    let bot = made(&store, "bot", "ann").await;
    let used = running(&store, &bot.id).await;
    let repaired = Account { updated_at: at(5), ..bot.clone() };
    let repaired = store.update_account_as_seen(&repaired, Some(b"new"), None).await.unwrap();
    let seen = Some(bot.updated_at);
    let late = store.block_account(&bot.id, "401 wrong token", seen, at(6)).await.unwrap();
    assert_eq!(late, Blocked::default(), "the answer is about the former token");
    assert_eq!(now(&store, &bot.id).await.blocked, None);
    assert_eq!(campaign_now(&store, used.id).await.state, CampaignState::Running);
    let seen = Some(repaired.done().unwrap().updated_at);
    let blocked = store.block_account(&bot.id, "401 wrong token", seen, at(7)).await.unwrap();
    assert_eq!((blocked.is_new, blocked.stopped.len()), (true, 1));
}

/// Blocks an account behind the back of its campaigns.
async fn block_alone(db: &Database, id: &AccountId, deleted: bool) {
    sqlx::any::install_default_drivers();
    let stranger = sqlx::AnyPool::connect(&db.url).await.unwrap();
    let set = if deleted { "deleted = 1" } else { "blocked = '401 wrong token'" };
    let update = format!("UPDATE campaign_accounts SET {set} WHERE id = '{id}'");
    sqlx::query(sqlx::AssertSqlSafe(update)).execute(&stranger).await.unwrap();
}

async fn through_an_account_that_may_not_send_nothing_starts_and_nothing_is_claimed(db: Database) {
    let store = db.store().await;
    let bot = made(&store, "bot", "ann").await;
    let used = running(&store, &bot.id).await;
    let ids: Vec<_> = all(&store, used.id).await.iter().map(|it| it.id).collect();
    let draft = Campaign { account: bot.id.clone(), ..campaign("ann") };
    store.insert_campaign(&draft).await.unwrap();
    let start = async |change| store.move_campaign(&change).await.unwrap();
    for (is_deleted, wanted) in [
        (false, Moved::NoAccount(Some("401 wrong token".to_owned()))),
        (true, Moved::NoAccount(None)),
    ] {
        block_alone(&db, &bot.id, is_deleted).await;
        assert_eq!(start(change(draft.id, CampaignChange::Start, at(5))).await, wanted);
        let later = change(draft.id, CampaignChange::Schedule, at(5));
        assert_eq!(start(Move { start_at: Some(at(9)), ..later }).await, wanted);
        let answers = store.claim_recipients(&[claim(&used, ids[0])], at(5)).await.unwrap();
        assert_eq!(answers, [Claimed::Nothing]);
    }
    assert_eq!(campaign_now(&store, draft.id).await.state, CampaignState::Draft);
}

async fn a_scheduled_campaign_of_a_blocked_account_becomes_a_draft_at_its_time(db: Database) {
    let store = db.store().await;
    let bot = made(&store, "bot", "ann").await;
    let new = Campaign { account: bot.id.clone(), ..campaign("ann") };
    store.insert_campaign(&new).await.unwrap();
    import(&store, new.id, &recipients(2)).await;
    let schedule = change(new.id, CampaignChange::Schedule, at(2));
    store.move_campaign(&Move { start_at: Some(at(100)), ..schedule }).await.unwrap();
    store.block_account(&bot.id, "401 wrong token", None, at(5)).await.unwrap();
    assert_eq!(store.feed_campaign(new.id, 9, at(99)).await.unwrap(), Fed::default());
    let waiting = campaign_now(&store, new.id).await;
    assert_eq!(waiting.state, CampaignState::Scheduled, "the account may be repaired in time");
    let fed = store.feed_campaign(new.id, 9, at(100)).await.unwrap();
    assert_eq!((fed.stopped.as_deref(), fed.is_running), (Some("401 wrong token"), false));
    let stopped = campaign_now(&store, new.id).await;
    assert_eq!(stopped.state, CampaignState::Draft);
    assert_eq!(stopped.reason.as_deref(), Some("401 wrong token"));
    assert_eq!(store.campaigns_to_feed(at(101), None, 9).await.unwrap(), []);
}

async fn a_running_campaign_of_a_deleted_account_is_paused(db: Database) {
    let store = db.store().await;
    let bot = made(&store, "bot", "ann").await;
    let used = running(&store, &bot.id).await;
    block_alone(&db, &bot.id, true).await;
    let fed = store.feed_campaign(used.id, 9, at(6)).await.unwrap();
    assert_eq!(
        (fed.stopped.as_deref(), fed.taken_back.len()),
        (Some("account bot was deleted"), 2)
    );
    let paused = campaign_now(&store, used.id).await;
    assert_eq!((paused.state, paused.counts.pending), (CampaignState::Paused, 2));
    assert_eq!(paused.reason, fed.stopped);
    let former = store.account_even_deleted(&bot.id).await.unwrap().unwrap();
    assert_eq!((former.channel, former.country), (bot.channel, bot.country));
    assert_eq!(store.account(&bot.id).await.unwrap(), None);
}

async fn an_account_in_use_is_not_deleted(db: Database) {
    let store = db.store().await;
    let bot = made(&store, "bot", "ann").await;
    let used = running(&store, &bot.id).await;
    let delete = async || store.delete_account_as_seen(&bot.id, None).await.unwrap();
    assert_eq!(delete().await, AccountDeleted::InUse);
    moved(&store, used.id, CampaignChange::Pause, at(5)).await;
    assert_eq!(delete().await, AccountDeleted::InUse);
    store.move_campaign(&change(used.id, CampaignChange::Cancel, at(6))).await.unwrap();
    assert_eq!(delete().await, AccountDeleted::Gone);
    assert_eq!(all(&store, used.id).await.len(), 2, "its campaign stays");
}

async fn a_replaced_ticket_secret_blocks_accounts_until_their_credentials_are_entered_again(
    db: Database,
) {
    let store = db.store().await;
    let bot = made(&store, "bot", "ann").await;
    let used = running(&store, &bot.id).await;
    let renewed = db.reader().await.with_ticket_secret(&TicketSecret::new("another secret"));
    renewed.renew_ticket_secret(Timestamp::now()).await.unwrap();
    let blocked = now(&renewed, &bot.id).await;
    assert!(blocked.blocked.as_ref().unwrap().contains("credentials"), "{blocked:?}");
    let paused = campaign_now(&renewed, used.id).await;
    assert_eq!(paused.state, CampaignState::Paused);
    assert!(paused.reason.unwrap().contains("credentials"));
    assert_eq!(now(&renewed, &AccountId::console()).await.blocked, None, "it has none to lose");
    let error = renewed.account_credentials(&bot.id).await.unwrap_err();
    assert!(error.to_string().contains("account bot"), "{error}");

    let settings = Account { settings: "{}".to_owned(), ..blocked };
    let written = renewed.update_account_as_seen(&settings, None, None).await.unwrap().done();
    assert!(written.unwrap().blocked.is_some(), "other settings do not bring them back");
    let written = renewed.update_account_as_seen(&settings, Some(b"new"), None).await.unwrap();
    assert_eq!(written.done().unwrap().blocked, None);
    assert_eq!(renewed.account_credentials(&bot.id).await.unwrap().unwrap(), b"new");
    assert!(store.insert_account(&account("more", None), b"x", 9).await.is_err(), "the old secret");
}

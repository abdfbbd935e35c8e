//! Limits, by the times at which the calls began.

use std::time::Duration;

use jiff::civil::Time;
use jiff::tz::TimeZone;
use serde_json::json;
use stampede_campaign::{AccountChange, AccountChanged, CampaignEdit, Moved, Paused};
use stampede_model::campaign::{
    AccountId, Channel, Pacing, QuietHours, Rate, Spacing, SuppressionReason, WarmUp,
};
use stampede_model::{CampaignId, Timestamp};
use stampede_store::{Account, Suppression};
use stampede_testkit::{MailServer, eventually};

use crate::stage::{PATIENCE, Stage, campaign, fast, limited, now, rows};

/// When the calls of a campaign began, in order.
pub(crate) async fn begun(stage: &Stage, id: CampaignId) -> Vec<Timestamp> {
    let mut times = Vec::new();
    for recipient in stage.ledger(id).await {
        let attempts = stage.store.recipient_attempts(recipient.id).await.unwrap();
        times.extend(attempts.iter().map(|attempt| attempt.at));
    }
    times.sort();
    times
}

pub(crate) fn assert_keeps(times: &[Timestamp], rate: Rate) {
    for pair in times.windows(rate.max as usize + 1) {
        let took = pair[rate.max as usize].duration_since(pair[0]).as_millis();
        // Times are kept in whole milliseconds.
        assert!(took + 1 >= i128::from(rate.per_ms), "{took} ms: {times:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_keep_the_limit_of_the_account_in_every_window() {
    let stage = Stage::start().await;
    let rate = Rate { max: 10, per_ms: 500 };
    let account = stage.account(json!({}), limited(rate.max, rate.per_ms)).await;
    let id = stage.campaign(&account, 60).await;
    let _workers = [stage.work(), stage.work()];
    stage.started(id).await;
    stage.completed(id).await;
    assert_keeps(&begun(&stage, id).await, rate);
    stage.assert_each_got_one(60);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_campaigns_own_limit_and_spacing_hold_and_can_be_changed_while_it_runs() {
    let stage = Stage::start().await;
    let account = stage.account(json!({}), fast()).await;
    let mut new = campaign(&account);
    new.pacing =
        Pacing { spacing: Some(Spacing { min_ms: 100, max_ms: 150 }), ..limited(1, 60_000) };
    let id = stage.campaign_with(new, rows(10)).await;
    let _worker = stage.work();
    stage.started(id).await;
    stage.until(id, |contract| contract.counts.sent == 1).await;
    let spacing = Some(Spacing { min_ms: 100, max_ms: 150 });
    let pacing = Pacing { spacing, ..Pacing::default() };
    let edit = CampaignEdit { pacing: Some(pacing), ..CampaignEdit::default() };
    stage.campaigns.edit(id, None, &edit).await.unwrap();
    stage.completed(id).await;
    assert_keeps(&begun(&stage, id).await, Rate { max: 1, per_ms: 100 });
}

/// Waits until so many messages wait in the queue.
pub(crate) async fn wait(stage: &Stage, count: u64) {
    let messages = stage.broker.queue("messages").await.unwrap();
    eventually(PATIENCE, || async {
        let counts = messages.counts().await.unwrap();
        if counts.delayed == count { Ok(()) } else { Err(format!("{counts:?}")) }
    })
    .await;
}

/// Waits until so many jobs have ended: those of messages that wait for the opening of quiet hours do, too.
async fn looked_at(stage: &Stage, count: u64) {
    let messages = stage.broker.queue("messages").await.unwrap();
    eventually(PATIENCE, || async {
        let counts = messages.counts().await.unwrap();
        if counts.completed == count { Ok(()) } else { Err(format!("{counts:?}")) }
    })
    .await;
}

/// Waits until so many messages have come in all, and so many others wait: those that have just been asked for wait for a moment,
/// too.
async fn come_and_wait(stage: &Stage, come: usize, waiting: u64) {
    stage.receiver.has(come).await;
    wait(stage, waiting).await;
    assert_eq!(stage.receiver.received().len(), come);
}

/// Changes how fast an account sends.
pub(crate) async fn pace(stage: &Stage, account: &AccountId, pacing: Pacing) {
    let change = AccountChange { pacing: Some(pacing), ..AccountChange::default() };
    let changed = stage.campaigns.change_account(account, None, &change).await.unwrap();
    assert!(matches!(changed, AccountChanged::Done(_)), "{changed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_campaign_with_a_limit_of_0_stays_and_goes_on_when_the_limit_is_raised() {
    let stage = Stage::start().await;
    let account = stage.account(json!({}), fast()).await;
    let mut closed = campaign(&account);
    closed.pacing = limited(0, 1_000);
    let id = stage.campaign_with(closed, rows(3)).await;
    let _worker = stage.work();
    assert_eq!(stage.started(id).await.eta_at, None, "nobody can say");
    wait(&stage, 3).await;
    assert!(stage.receiver.received().is_empty());
    let edit = CampaignEdit { pacing: Some(Pacing::default()), ..CampaignEdit::default() };
    stage.campaigns.edit(id, None, &edit).await.unwrap();
    assert_eq!(stage.completed(id).await.counts.sent, 3);
    // A limit of the account stops all of its campaigns.
    pace(&stage, &account, limited(0, 1_000)).await;
    let other = stage.campaign(&account, 2).await;
    stage.started(other).await;
    wait(&stage, 2).await;
    assert_eq!(stage.receiver.received().len(), 3);
    pace(&stage, &account, fast()).await;
    assert_eq!(stage.completed(other).await.counts.sent, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daily_cap_holds_for_all_campaigns_of_an_account_until_it_is_raised() {
    let stage = Stage::start().await;
    let capped = |cap| Pacing { daily_cap: Some(cap), ..fast() };
    let account = stage.account(json!({}), capped(5)).await;
    let ids = [stage.campaign(&account, 4).await, stage.campaign(&account, 4).await];
    let _workers = [stage.work(), stage.work()];
    for id in ids {
        stage.started(id).await;
    }
    come_and_wait(&stage, 5, 3).await;
    pace(&stage, &account, capped(8)).await;
    // Messages that wait ask again within half a minute; those of a campaign that is resumed ask at once.
    for id in ids {
        if let Paused::Done(_) = stage.campaigns.pause(id).await.unwrap() {
            // Its last message may have been in flight: then it is completed.
            let resumed = stage.campaigns.resume(id).await.unwrap();
            let is_over = matches!(resumed, Moved::WrongState(_) | Moved::NotReady(_));
            assert!(is_over || matches!(resumed, Moved::Done(_)), "{resumed:?}");
        }
    }
    for id in ids {
        assert_eq!(stage.completed(id).await.counts.sent, 4);
    }
    assert_eq!(stage.receiver.received().len(), 8);
}

/// A time zone in which it is about noon: its day does not end during a test.
fn at_noon() -> String {
    let hour = now().as_second() / 3_600 % 24;
    // By their names, zones east of Greenwich have a minus.
    format!("Etc/GMT{:+}", hour - 12)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_is_warmed_up_sends_as_many_messages_as_its_day_has() {
    let stage = Stage::start().await;
    let usual = stage.account(json!({}), fast()).await;
    let warm_up = Some(WarmUp { start: 3, factor: 2.0, max: 1_000 });
    let read = stage.store.account(&usual).await.unwrap().unwrap();
    let credentials = stage.store.account_credentials(&usual).await.unwrap().unwrap();
    let two_days_ago = now() - Duration::from_secs(48 * 3_600);
    for (id, first_sent_at, cap) in [("new", None, 3), ("third-day", Some(two_days_ago), 12)] {
        let account = Account {
            id: id.parse().unwrap(),
            pacing: Pacing { warm_up, ..fast() },
            time_zone: Some(at_noon()),
            first_sent_at,
            ..read.clone()
        };
        stage.store.insert_account(&account, &credentials, 9).await.unwrap();
        let before = stage.receiver.received().len();
        let campaign = stage.campaign(&account.id, cap + 2).await;
        let worker = stage.work();
        stage.started(campaign).await;
        come_and_wait(&stage, before + cap, 2).await;
        stage.until(campaign, |contract| contract.counts.sent == cap as u64).await;
        stage.campaigns.cancel(campaign).await.unwrap();
        worker.stop();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_mail_waits_for_a_connection_with_its_permits() {
    let (stage, server) = (Stage::start().await, MailServer::start().await);
    let url = format!("smtp://127.0.0.1:{}?tls=none", server.port());
    let settings = json!({ "url": url, "from": "ann@example.com" });
    let account = stage.account_of(Channel::Smtp, settings, json!({}), fast()).await;
    let mut mails = rows(12);
    for (number, mail) in mails.iter_mut().enumerate() {
        // The server says nothing any more.
        mail.address = format!("mute@{number}.example.net");
    }
    let id = stage.campaign_with(campaign(&account), mails).await;
    let _workers = [stage.work(), stage.work()];
    stage.started(id).await;
    // Four are on their way, over both workers. The others are not claimed, and hold no permits: when the server answers again,
    // none leaves that got its permits long ago.
    let messages = stage.broker.queue("messages").await.unwrap();
    eventually(PATIENCE, || async {
        let (counts, sending) =
            (messages.counts().await.unwrap(), stage.contract(id).await.counts.sending);
        match (sending, counts.delayed) {
            (4, 5..) => Ok(()),
            _ => Err(format!("{sending} are on their way, {counts:?}")),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_in_quiet_hours() {
    let stage = Stage::start().await;
    let account = stage.account(json!({}), fast()).await;
    let mut new = campaign(&account);
    // All of today and tomorrow, in every zone.
    let hours = QuietHours {
        from: "00:00".parse().unwrap(),
        to: "00:00".parse().unwrap(),
        days: Some(vec![
            stampede_model::campaign::Day::Monday,
            stampede_model::campaign::Day::Tuesday,
            stampede_model::campaign::Day::Wednesday,
            stampede_model::campaign::Day::Thursday,
            stampede_model::campaign::Day::Friday,
            stampede_model::campaign::Day::Saturday,
            stampede_model::campaign::Day::Sunday,
        ]),
        time_zone: None,
    };
    new.pacing.quiet_hours = Some(hours);
    let id = stage.campaign_with(new, rows(4)).await;
    let stopped = Suppression {
        owner: "ann".to_owned(),
        account: None,
        address: "person-2".to_owned(),
        reason: SuppressionReason::Manual,
        since: now(),
        by: "ann".to_owned(),
    };
    stage.store.add_suppressions(&[stopped]).await.unwrap();
    let worker = stage.work();
    stage.started(id).await;
    looked_at(&stage, 4).await;
    assert!(stage.receiver.received().is_empty());
    // Who is suppressed does not wait for the morning.
    stage.until(id, |contract| contract.counts.skipped == 1).await;
    // For half a second, a worker would go on by the hours that it has read.
    worker.stop();
    let edit = CampaignEdit { pacing: Some(Pacing::default()), ..CampaignEdit::default() };
    stage.campaigns.edit(id, None, &edit).await.unwrap();
    assert!(matches!(stage.campaigns.pause(id).await.unwrap(), Paused::Done(_)));
    assert!(stage.receiver.received().is_empty());
    assert!(matches!(stage.campaigns.resume(id).await.unwrap(), Moved::Done(_)));
    let _worker = stage.work();
    assert_eq!(stage.completed(id).await.counts.sent, 3);
}

/// A time of day in Greenwich.
fn time(moment: Timestamp) -> Time {
    moment.to_zoned(TimeZone::UTC).time()
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_leave_after_the_opening_of_quiet_hours_and_not_before() {
    let stage = Stage::start().await;
    let account = stage.account(json!({}), fast()).await;
    let opening = Timestamp::from_second(now().as_second() + 12).unwrap();
    let mut new = campaign(&account);
    new.pacing.quiet_hours = Some(QuietHours {
        from: time(opening + Duration::from_secs(3_600)),
        to: time(opening),
        days: None,
        time_zone: Some("UTC".to_owned()),
    });
    let id = stage.campaign_with(new, rows(20)).await;
    let _worker = stage.work();
    stage.started(id).await;
    looked_at(&stage, 20).await;
    assert!(stage.receiver.received().is_empty());
    // Each leaves at a moment of its own in the minute after the opening.
    stage.until(id, |contract| contract.counts.sent >= 5).await;
    let times = begun(&stage, id).await;
    assert!(times.iter().all(|time| *time >= opening), "opening {opening}: {times:?}");
    assert!(times.iter().any(|time| *time != times[0]), "they are spread: {times:?}");
}

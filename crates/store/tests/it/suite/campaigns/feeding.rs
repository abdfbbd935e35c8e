//! Recipients that get a job.

use std::time::Duration;

use stampede_model::CampaignId;
use stampede_model::campaign::{CampaignChange, CampaignState, RecipientState, SkipReason};
use stampede_store::{AttemptEffect, Campaign, Claimed, Fed, Move, Store};

use super::accounts::account;
use super::{
    all, assert_counts, campaign, campaign_now, change, claim, claimed, import, moved, queued,
    read, recipients, result, sent, states,
};
use crate::backends::Database;
use crate::suite::samples::at;

on_every_backend!(
    a_portion_is_fed_by_position_and_never_more_than_asked_for,
    what_is_due_again_goes_first_and_the_next_time_is_told,
    recipients_that_wait_for_quiet_hours_make_room_for_others,
    recipients_that_wait_for_hours_are_fed_again_when_hours_are_changed,
    a_scheduled_campaign_starts_when_its_time_has_come,
    a_campaign_whose_end_has_come_skips_what_is_left_and_is_completed,
    a_large_campaign_whose_end_has_come_is_skipped_in_portions,
    a_campaign_is_completed_when_nothing_is_open,
    two_feeders_queue_every_recipient_once,
    campaigns_that_need_a_feeder_are_found,
);

/// As long as a night.
const HOURS: Duration = Duration::from_secs(10 * 3_600);

async fn running(store: &Store, count: usize) -> Campaign {
    let new = campaign("ann");
    store.insert_campaign(&new).await.unwrap();
    import(store, new.id, &recipients(count)).await;
    moved(store, new.id, CampaignChange::Start, at(2)).await
}

async fn a_portion_is_fed_by_position_and_never_more_than_asked_for(db: Database) {
    let store = db.store().await;
    let running = running(&store, 5).await;
    let ids: Vec<_> = all(&store, running.id).await.iter().map(|it| it.id).collect();
    let fed = store.feed_campaign(running.id, 2, at(3)).await.unwrap();
    assert_eq!(fed.queued, ids[..2]);
    assert!(fed.is_running && !fed.is_completed && fed.next_at.is_none());
    assert_eq!(store.feed_campaign(running.id, 2, at(3)).await.unwrap().queued, []);
    assert_eq!(store.feed_campaign(running.id, 3, at(3)).await.unwrap().queued, ids[2..3]);
    let run = claimed(&store, &running, ids[0]).await;
    store.record_runs(&[sent(ids[0], run, "m")], at(5)).await.unwrap();
    assert_eq!(store.feed_campaign(running.id, 3, at(6)).await.unwrap().queued, ids[3..4]);
    assert_eq!(
        store.feed_campaign(CampaignId::generate(), 3, at(6)).await.unwrap(),
        Fed::default()
    );
    assert_counts(&store).await;
}

async fn what_is_due_again_goes_first_and_the_next_time_is_told(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 3).await;
    for (id, second) in [(ids[0], 30), (ids[1], 20), (ids[2], 40)] {
        let run = claimed(&store, &running, id).await;
        let retry = AttemptEffect::Retry(at(second));
        store.record_runs(&[result(id, run, retry)], at(5)).await.unwrap();
    }
    let fed = store.feed_campaign(running.id, 9, at(19)).await.unwrap();
    assert_eq!((fed.queued, fed.next_at), (vec![], Some(at(20))));
    let fed = store.feed_campaign(running.id, 9, at(30)).await.unwrap();
    assert_eq!((fed.queued, fed.next_at), (vec![ids[1], ids[0]], None), "by time");
    assert_eq!(read(&store, ids[1]).await.next_at, None);
    let fed = store.feed_campaign(running.id, 9, at(31)).await.unwrap();
    assert_eq!(
        (fed.queued, fed.next_at),
        (vec![], None),
        "two are on their way: it is fed again soon"
    );
}

async fn recipients_that_wait_for_quiet_hours_make_room_for_others(db: Database) {
    let store = db.store().await;
    // The console was changed when the database was made, which is later.
    store.insert_account(&account("bot", Some("ann")), b"", 9).await.unwrap();
    let new = Campaign { account: "bot".parse().unwrap(), ..campaign("ann") };
    store.insert_campaign(&new).await.unwrap();
    import(&store, new.id, &recipients(4)).await;
    let running = moved(&store, new.id, CampaignChange::Start, at(2)).await;
    let ids: Vec<_> = all(&store, running.id).await.iter().map(|it| it.id).collect();
    let feed = async |now| store.feed_campaign(running.id, 2, now).await.unwrap();
    let later = || at(3) + HOURS;
    assert_eq!(feed(at(3)).await.queued, ids[..2]);
    for id in &ids[..2] {
        assert!(store.put_off_recipient(*id, later(), at(20)).await.unwrap());
        assert!(!store.put_off_recipient(*id, later(), at(20)).await.unwrap(), "it is not queued");
    }
    let waiting = read(&store, ids[0]).await;
    assert_eq!((waiting.state, waiting.next_at), (RecipientState::Pending, Some(later())));
    assert_eq!((waiting.code.as_deref(), waiting.attempts), (Some("quiet_hours"), 0));
    let answers = store.claim_recipients(&[claim(&running, ids[0])], at(21)).await.unwrap();
    assert_eq!(answers, [Claimed::Nothing]);
    assert_eq!(feed(at(22)).await.queued, ids[2..], "others are not held up");
    for id in &ids[2..] {
        let run = claimed(&store, &running, *id).await;
        store.record_runs(&[sent(*id, run, "m")], at(23)).await.unwrap();
    }
    let idle = feed(at(24)).await;
    assert_eq!((idle.queued, idle.next_at), (vec![], Some(later())));
    assert_eq!(feed(later()).await.queued, ids[..2]);
    let queued = read(&store, ids[0]).await;
    assert_eq!((queued.state, queued.code, queued.detail), (RecipientState::Queued, None, None));
    let nobody = stampede_model::RecipientId::generate();
    assert!(!store.put_off_recipient(nobody, later(), at(20)).await.unwrap());
    assert_counts(&store).await;
}

async fn recipients_that_wait_for_hours_are_fed_again_when_hours_are_changed(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 2).await;
    // A minute after the console was made.
    let made = store.account(&running.account).await.unwrap().unwrap().updated_at.max(at(0));
    let after = |seconds: u64| made + Duration::from_secs(60 + seconds);
    let later = after(0) + HOURS;
    let run = claimed(&store, &running, ids[1]).await;
    let again = result(ids[1], run, AttemptEffect::Retry(later));
    store.record_runs(&[again], at(6)).await.unwrap();
    let put_off = async |now| {
        assert!(store.put_off_recipient(ids[0], later, now).await.unwrap());
    };
    let feed = async |now| store.feed_campaign(running.id, 9, now).await.unwrap().queued;
    put_off(after(0)).await;
    assert_eq!(feed(after(5)).await, [], "nothing was changed");
    let changed = Campaign { updated_at: after(6), ..running.clone() };
    store.update_campaign_as_seen(&changed, None).await.unwrap();
    assert_eq!(feed(after(7)).await, [ids[0]], "a retry stays where it is");
    // A job may have read the campaign some moments before the change. It has to end first.
    put_off(after(8)).await;
    assert_eq!(feed(after(9)).await, []);
    assert_eq!(feed(after(11)).await, [ids[0]]);
    // Put off by the new hours, it stays.
    put_off(after(60)).await;
    assert_eq!(feed(after(70)).await, []);
    // The hours of the account count, too.
    let account = store.account(&running.account).await.unwrap().unwrap();
    let account = stampede_store::Account { updated_at: after(80), ..account };
    store.update_account_as_seen(&account, None, None).await.unwrap();
    assert_eq!(feed(after(81)).await, [ids[0]]);
}

async fn a_scheduled_campaign_starts_when_its_time_has_come(db: Database) {
    let store = db.store().await;
    let new = campaign("ann");
    store.insert_campaign(&new).await.unwrap();
    import(&store, new.id, &recipients(1)).await;
    let schedule =
        Move { start_at: Some(at(100)), ..change(new.id, CampaignChange::Schedule, at(2)) };
    store.move_campaign(&schedule).await.unwrap();
    assert_eq!(store.feed_campaign(new.id, 9, at(99)).await.unwrap(), Fed::default());
    let fed = store.feed_campaign(new.id, 9, at(100)).await.unwrap();
    assert!(fed.is_running && fed.queued.len() == 1);
    let started = campaign_now(&store, new.id).await;
    assert_eq!((started.state, started.started_at), (CampaignState::Running, Some(at(100))));
    assert!(started.updated_at > at(2), "it has another version");
}

async fn a_campaign_whose_end_has_come_skips_what_is_left_and_is_completed(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 3).await;
    let run = claimed(&store, &running, ids[0]).await;
    let ending = Campaign { end_at: Some(at(50)), ..running.clone() };
    store.update_campaign_as_seen(&ending, None).await.unwrap();
    assert!(!store.feed_campaign(running.id, 9, at(49)).await.unwrap().is_completed);
    let fed = store.feed_campaign(running.id, 9, at(50)).await.unwrap();
    assert!(fed.is_running && !fed.is_completed, "one is in flight");
    assert_eq!(read(&store, ids[1]).await.skipped, Some(SkipReason::Expired));
    store.record_runs(&[sent(ids[0], run, "m")], at(51)).await.unwrap();
    assert!(store.feed_campaign(running.id, 9, at(52)).await.unwrap().is_completed);
    assert_counts(&store).await;
}

async fn a_large_campaign_whose_end_has_come_is_skipped_in_portions(db: Database) {
    let store = db.store().await;
    let new = Campaign { end_at: Some(at(50)), ..campaign("ann") };
    store.insert_campaign(&new).await.unwrap();
    import(&store, new.id, &recipients(5_001)).await;
    moved(&store, new.id, CampaignChange::Start, at(2)).await;
    let fed = store.feed_campaign(new.id, 9, at(50)).await.unwrap();
    assert_eq!((fed.queued, fed.next_at), (vec![], Some(at(50))), "to be fed again at once");
    assert!(fed.is_running && !fed.is_completed);
    assert_eq!(campaign_now(&store, new.id).await.counts.skipped, 5_000);
    assert!(store.feed_campaign(new.id, 9, at(51)).await.unwrap().is_completed);
    assert_eq!(campaign_now(&store, new.id).await.counts.skipped, 5_001);
    assert_counts(&store).await;
}

async fn a_campaign_is_completed_when_nothing_is_open(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 2).await;
    let runs = [claimed(&store, &running, ids[0]).await, claimed(&store, &running, ids[1]).await];
    store.record_runs(&[sent(ids[0], runs[0], "m")], at(5)).await.unwrap();
    assert!(!store.feed_campaign(running.id, 9, at(6)).await.unwrap().is_completed);
    let unknown = result(ids[1], runs[1], AttemptEffect::Unknown);
    store.record_runs(&[unknown], at(6)).await.unwrap();
    let fed = store.feed_campaign(running.id, 9, at(7)).await.unwrap();
    assert!(fed.is_completed && !fed.is_running, "what is unknown does not keep it open");
    assert!(store.feed_campaign(running.id, 9, at(8)).await.unwrap().is_completed);
    let completed = campaign_now(&store, running.id).await;
    assert_eq!((completed.state, completed.ended_at), (CampaignState::Completed, Some(at(7))));
}

async fn two_feeders_queue_every_recipient_once(db: Database) {
    let store = db.store().await;
    let running = running(&store, 200).await;
    let feeders = (0..4).map(|_| {
        let (url, id) = (db.url.clone(), running.id);
        tokio::spawn(async move {
            let config = stampede_store::Config { url, ..stampede_store::Config::default() };
            let store = Store::connect(&config).await.unwrap();
            let mut queued = Vec::new();
            for most in (10..=200).step_by(10) {
                queued.extend(store.feed_campaign(id, most, at(3)).await.unwrap().queued);
            }
            queued
        })
    });
    let mut queued = Vec::new();
    for feeder in feeders.collect::<Vec<_>>() {
        queued.extend(feeder.await.unwrap());
    }
    let fed = queued.len();
    queued.sort_unstable();
    queued.dedup();
    assert_eq!((fed, queued.len()), (200, 200));
    assert_eq!(states(&store, running.id).await, [RecipientState::Queued; 200]);
    assert_counts(&store).await;
}

async fn campaigns_that_need_a_feeder_are_found(db: Database) {
    let store = db.store().await;
    let (one, two) = (running(&store, 1).await, running(&store, 1).await);
    let draft = campaign("ann");
    store.insert_campaign(&draft).await.unwrap();
    let scheduled = campaign("ann");
    store.insert_campaign(&scheduled).await.unwrap();
    let schedule =
        Move { start_at: Some(at(100)), ..change(scheduled.id, CampaignChange::Schedule, at(2)) };
    store.move_campaign(&schedule).await.unwrap();
    let found = async |now, after, limit| store.campaigns_to_feed(now, after, limit).await.unwrap();
    assert_eq!(found(at(99), None, 9).await, [one.id, two.id]);
    let later = at(99) + Duration::from_secs(1);
    assert_eq!(found(later, None, 9).await, [one.id, two.id, scheduled.id]);
    assert_eq!(found(later, Some(one.id), 1).await, [two.id]);
    moved(&store, two.id, CampaignChange::Pause, at(5)).await;
    assert_eq!(found(at(99), None, 9).await, [one.id]);
}

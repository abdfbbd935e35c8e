//! Quiet hours of recipients in time zones of their own.

use serde_json::json;
use stampede_campaign::CampaignEdit;
use stampede_model::campaign::{Pacing, QuietHours, RecipientState};
use stampede_testkit::eventually;

use crate::stage::{PATIENCE, Stage, campaign, limited, now, rows};

/// A time zone in which it is about this hour now.
fn zone_where_it_is(hour: i64) -> String {
    let here = now().as_second() / 3_600 % 24;
    let offset = (hour - here + 36).rem_euclid(24) - 12;
    // By their names, zones east of Greenwich have a minus.
    format!("Etc/GMT{:+}", -offset)
}

#[tokio::test(flavor = "multi_thread")]
async fn recipients_that_sleep_do_not_hold_up_those_that_are_awake() {
    let stage = Stage::start().await;
    // 50 jobs wait in the queue at most.
    let account = stage.account(json!({}), limited(25, 60_000)).await;
    let mut new = campaign(&account);
    let hours = ("00:00".parse().unwrap(), "12:00".parse().unwrap());
    let quiet = QuietHours { from: hours.0, to: hours.1, days: None, time_zone: None };
    new.pacing.quiet_hours = Some(quiet);
    let mut list = rows(65);
    for (number, row) in list.iter_mut().enumerate() {
        row.time_zone = Some(zone_where_it_is(if number < 60 { 6 } else { 18 }));
    }
    let id = stage.campaign_with(new, list).await;
    let _worker = stage.work();
    stage.started(id).await;
    stage.receiver.has(5).await;
    let is_awake = |address: &String| (61..=65).any(|it| *address == format!("person-{it}"));
    assert!(stage.got().keys().all(is_awake), "{:?}", stage.got());
    let waiting = eventually(PATIENCE, || async {
        let ledger = stage.ledger(id).await;
        let waits = |it: &&stampede_store::Recipient| it.state == RecipientState::Pending;
        match ledger.iter().filter(waits).count() {
            60 => Ok(ledger),
            other => Err(format!("{other} wait")),
        }
    })
    .await;
    let opens = waiting[0].next_at.unwrap();
    let hours = opens.duration_since(now()).as_hours();
    assert!((4..=6).contains(&hours), "{hours}");
    assert_eq!(waiting[0].code.as_deref(), Some("quiet_hours"));
    // Without quiet hours, all of them may get their messages.
    let edit = CampaignEdit { pacing: Some(Pacing::default()), ..CampaignEdit::default() };
    stage.campaigns.edit(id, None, &edit).await.unwrap();
    stage.receiver.has(20).await;
}

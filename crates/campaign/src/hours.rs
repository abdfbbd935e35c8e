//! What the arithmetic of `pace` says about a campaign and its account: quiet hours, warm-up, the time of the last message.

use std::time::Duration;

use stampede_model::Timestamp;
use stampede_store::{Account, Campaign, QUIET_HOURS, Recipient};

use crate::pace::{self, Estimate, Quiet, Zones};
use crate::send::Ran;
use crate::{Campaigns, Error, asks, now, snapshot::Snapshot, speed::Speed};

/// Messages that waited for the same opening do not leave all at once.
const SPREAD: Duration = Duration::from_secs(60);
/// A message that waits no longer stays in the queue.
const SOON: Duration = Duration::from_secs(5);
/// A message that waits in the queue all the same is looked at again after this time: hours may be changed meanwhile.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// How long a message waits for the end of quiet hours; `None`: it may leave.
pub(crate) fn quiet_for(
    snapshot: &Snapshot,
    recipient: &Recipient,
    now: Timestamp,
) -> Option<Duration> {
    let Snapshot { campaign, account, .. } = snapshot;
    if account.pacing.quiet_hours.is_none() && campaign.pacing.quiet_hours.is_none() {
        return None;
    }
    let quiet = quiet(campaign, account, recipient.time_zone.as_deref());
    wait_for_opening(&quiet, now, rand::random())
}

/// How long to wait for the opening and a part of [`SPREAD`] after it; `None`: it is open. `random` is from 0 until before 1.
fn wait_for_opening(quiet: &[Quiet], now: Timestamp, random: f64) -> Option<Duration> {
    let opens = pace::opens_at(quiet, now)?;
    let wait = Duration::try_from(opens.duration_since(now)).unwrap_or_default();
    Some(wait + SPREAD.mul_f64(random))
}

impl Campaigns {
    /// A message waits for the end of quiet hours. Unless that is soon, its recipient leaves the queue: others, in other time zones,
    /// take its place.
    pub(crate) async fn wait_for_hours(
        &self,
        recipient: &Recipient,
        wait: Duration,
    ) -> Result<Ran, Error> {
        if wait > SOON {
            let now = now();
            let is_put_off =
                self.shared.store.put_off_recipient(recipient.id, now + wait, now).await?;
            if is_put_off {
                return Ok(Ran::Ended(QUIET_HOURS));
            }
        }
        Ok(Ran::Later(wait.min(LONGEST_WAIT)))
    }
}

/// The quiet hours of account and campaign.
fn quiet(campaign: &Campaign, account: &Account, recipient: Option<&str>) -> Vec<Quiet> {
    let zones = Zones {
        recipient,
        campaign: campaign.time_zone.as_deref(),
        account: account.time_zone.as_deref(),
    };
    [&account.pacing, &campaign.pacing]
        .into_iter()
        .filter_map(|pacing| pacing.quiet_hours.as_ref())
        .map(|hours| Quiet::new(hours, &zones))
        .collect()
}

/// The day of an account that is warmed up, and the most messages of that day.
pub(crate) fn warm_up_of(account: &Account, now: Timestamp) -> Option<(String, u32)> {
    let warm_up = account.pacing.warm_up.as_ref()?;
    let zones = Zones { account: account.time_zone.as_deref(), ..Zones::default() };
    let zone = zones.for_days();
    let day = pace::day_of(account.first_sent_at, now, &zone);
    Some((pace::day_name(now, &zone), pace::cap_of_day(warm_up, day)))
}

/// When the present day of an account that is warmed up began.
pub(crate) fn day_began(account: &Account, now: Timestamp) -> Timestamp {
    let zones = Zones { account: account.time_zone.as_deref(), ..Zones::default() };
    pace::day_began(now, &zones.for_days())
}

/// When the last of `count` messages leaves if the first leaves at `start`; `None`: nobody can say. A campaign
/// that runs slower than its limits allow goes on as it did.
pub(crate) fn done_at(
    campaign: &Campaign,
    account: &Account,
    speed: Speed,
    count: u64,
    start: Timestamp,
) -> Option<Timestamp> {
    let zones = Zones { account: account.time_zone.as_deref(), ..Zones::default() };
    let mut estimate = Estimate {
        warm_up: account
            .pacing
            .warm_up
            .map(|warm_up| (warm_up, account.first_sent_at, zones.for_days())),
        quiet: quiet(campaign, account, None),
        ..Estimate::default()
    };
    estimate.add(&account.pacing).add(&campaign.pacing);
    if account.pacing.limit.is_none() {
        estimate.limits.push(asks::account_rate(&account.pacing));
    }
    estimate.limits.extend(speed.allowed);
    // The last message is not only begun, but answered.
    let answered = u64::from(speed.measured.is_some());
    estimate.limits.extend(speed.measured);
    estimate.done_at(count + answered, start)
}

#[cfg(test)]
mod tests {
    use stampede_model::campaign::QuietHours;

    use super::*;

    fn night() -> Vec<Quiet> {
        let (from, to) = ("21:00".parse().unwrap(), "09:00".parse().unwrap());
        let hours = QuietHours { from, to, days: None, time_zone: None };
        vec![Quiet::new(&hours, &Zones::default())]
    }

    fn wait(at: &str, random: f64) -> Option<u64> {
        let now = format!("2026-11-18T{at}Z").parse().unwrap();
        wait_for_opening(&night(), now, random).map(|wait| wait.as_secs())
    }

    #[test]
    fn messages_leave_within_a_minute_of_the_opening_and_not_before_it() {
        for (at, random, wanted) in [
            ("08:50:00", 0.0, Some(600)),
            ("08:50:00", 0.5, Some(630)),
            ("08:50:00", 0.999_99, Some(659)),
            ("08:59:59", 0.0, Some(1)),
            ("08:59:59", 0.999_99, Some(60)),
            ("09:00:00", 0.5, None),
            ("20:59:59", 0.5, None),
        ] {
            assert_eq!(wait(at, random), wanted, "{at} {random}");
        }
        let randoms: Vec<Duration> = (0..200)
            .filter_map(|_| {
                let now = "2026-11-18T08:50:00Z".parse().unwrap();
                wait_for_opening(&night(), now, rand::random())
            })
            .collect();
        let (first, last) = (randoms.iter().min().unwrap(), randoms.iter().max().unwrap());
        assert!(*first >= Duration::from_secs(600) && *last < Duration::from_secs(660));
        assert!(*last - *first > Duration::from_secs(30), "they do not leave all at once");
    }

    #[test]
    fn a_message_waits_for_the_opening_however_far_it_is() {
        assert_eq!(wait("21:00:00", 0.5), Some(12 * 3_600 + 30));
        assert_eq!(wait("08:40:00", 0.0), Some(1_200));
    }
}

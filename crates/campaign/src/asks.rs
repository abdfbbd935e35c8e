//! The permits that a message needs, in the order in which they are asked for.
//!
//! ```text
//!   spacing → caps (day, warm-up) → [breaker] → pair → campaign → account → channel
//! ```
//!
//! | limit in Redis | |
//! |---|---|
//! | `spacing:<account>` | a pause of random length after each message, and a longer one after so many |
//! | `day:<account>` | most messages of 24 hours; WhatsApp counts different recipients |
//! | `warmup:<account>:<day>` | most messages of a day while the account is new |
//! | `pair:<account>:<address>` | how often one recipient gets a message |
//! | `pair:<account>:<address>:<ms>` | another window for the same recipient: groups of Telegram |
//! | `campaign:<id>`, `account:<id>` | the limits that people set |
//! | `channel:<channel>:<account>` | what the provider allows |
//!
//! A campaign may have spacing and a daily cap of its own: `spacing:campaign:<id>`, `day:campaign:<id>`.
//!
//! The limits that people set (`day`, `warmup`, `campaign`, `account`) have a history: the ledger knows which messages have left.
//! Spacing, pairs and providers' limits have none: they begin anew in a Redis that has lost its data.

use std::time::Duration;

use sha2::{Digest, Sha256};
use stampede_broker::{Ask, Pause, Rate, Rest};
use stampede_channel as channel;
use stampede_model::Timestamp;
use stampede_model::campaign::{self as model, AccountId, Channel, Pacing};
use stampede_store::{SendFilter, SendScope};

use crate::snapshot::Snapshot;
use crate::{hours, pace};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The name of an account's limit.
pub(crate) fn account_limit(account: &AccountId) -> String {
    format!("account:{account}")
}

/// The name of the limit of one recipient.
pub(crate) fn pair_limit(account: &AccountId, address: &str) -> String {
    format!("pair:{account}:{}", hashed(address))
}

/// An address in the name of a limit: names are seen by operators, and have fewer letters than addresses.
fn hashed(address: &str) -> String {
    Sha256::digest(address).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Spacing and caps. `random` is from 0 until before 1.
pub(crate) fn spacing_and_caps(
    snapshot: &Snapshot,
    address: &str,
    now: Timestamp,
    random: f64,
) -> Vec<Ask> {
    let Snapshot { account, campaign, .. } = snapshot;
    let scopes = [
        (account.id.to_string(), &account.pacing),
        (format!("campaign:{}", campaign.id), &campaign.pacing),
    ];
    let mut asks = Vec::new();
    for (scope, pacing) in &scopes {
        asks.extend(pause(pacing, random).map(|pause| {
            let limit = Ask::new(format!("spacing:{scope}"));
            Ask { pause, ..limit }
        }));
    }
    let counts_as = (account.channel == Channel::Whatsapp).then(|| hashed(address));
    for (scope, pacing) in &scopes {
        asks.extend(pacing.daily_cap.map(|cap| {
            let limit = with_history(Ask::at(format!("day:{scope}"), Rate::new(cap, DAY)));
            Ask { counts_as: counts_as.clone(), ..limit }
        }));
    }
    if let Some((day, most)) = hours::warm_up_of(account, now) {
        // The name is the day's: the window only has to be longer than a day.
        let limit = format!("{}{day}", warm_up_prefix(&account.id));
        asks.push(with_history(Ask::at(limit, Rate::new(most, 2 * DAY))));
    }
    asks
}

fn with_history(ask: Ask) -> Ask {
    Ask { has_history: true, ..ask }
}

fn warm_up_prefix(account: &AccountId) -> String {
    format!("warmup:{account}:")
}

/// The messages that a limit with a history counts.
pub(crate) fn sends_of(
    snapshot: &Snapshot,
    ask: &Ask,
    window: Duration,
    now: Timestamp,
) -> SendFilter {
    let Snapshot { account, campaign, .. } = snapshot;
    let of_campaign = format!("campaign:{}", campaign.id);
    let is_of_campaign = ask.limit.strip_prefix("day:").unwrap_or(&ask.limit) == of_campaign;
    let scope = match is_of_campaign {
        true => SendScope::Campaign(campaign.id),
        false => SendScope::Account(account.id.clone()),
    };
    let since = match ask.limit.starts_with(&warm_up_prefix(&account.id)) {
        true => hours::day_began(account, now),
        false => now.checked_sub(window).unwrap_or(Timestamp::UNIX_EPOCH),
    };
    SendFilter { scope, since, once_per_address: ask.counts_as.is_some() }
}

/// The pause after a message.
fn pause(pacing: &Pacing, random: f64) -> Option<Pause> {
    let (spacing, rest) = (pacing.spacing, pacing.rest);
    if spacing.is_none() && rest.is_none() {
        return None;
    }
    let length = spacing.map_or(0.0, |spacing| {
        let (least, most) = (spacing.min_ms, spacing.max_ms.max(spacing.min_ms));
        least as f64 + (most - least) as f64 * random
    });
    let rest = rest
        .filter(|rest| rest.every > 0)
        .map(|rest| Rest { every: rest.every, length: Duration::from_millis(rest.for_ms) });
    Some(Pause { length: Duration::from_millis(length.round() as u64), rest })
}

/// The limits of pair, campaign, account and channel.
pub(crate) fn rates(snapshot: &Snapshot, address: &str) -> Vec<Ask> {
    let Snapshot { account, campaign, sender, .. } = snapshot;
    let pair = pair_limit(&account.id, address);
    let of_pair = channel::pair_limits(sender, address);
    let mut asks: Vec<Ask> = named(&pair, &of_pair);
    asks.extend(
        campaign
            .pacing
            .limit
            .map(|rate| with_history(Ask::at(format!("campaign:{}", campaign.id), of(rate)))),
    );
    let of_account = Ask::at(account_limit(&account.id), of(account_rate(&account.pacing)));
    asks.push(with_history(of_account));
    let name = format!("channel:{}:{}", account.channel.as_str(), account.id);
    asks.extend(channel::limits(sender).channel.map(|rate| Ask::at(name, of(rate))));
    asks
}

/// The limits of a pair: the first has its name, the others have their window behind it.
fn named(pair: &str, rates: &[model::Rate]) -> Vec<Ask> {
    let name = |number: usize, rate: &model::Rate| match number {
        0 => pair.to_owned(),
        _ => format!("{pair}:{}", rate.per_ms),
    };
    rates.iter().enumerate().map(|(n, rate)| Ask::at(name(n, rate), of(*rate))).collect()
}

/// The limit of an account.
pub(crate) fn account_rate(pacing: &Pacing) -> model::Rate {
    pacing.limit.unwrap_or(model::Rate::DEFAULT)
}

/// Most messages of the account that may be on their way at once, over all workers. A channel that has fewer connections takes no
/// more: a message that waited for a connection with its permits would leave later than they say.
pub(crate) fn most_in_flight(snapshot: &Snapshot) -> u32 {
    let account = &snapshot.account;
    let paced = pace::in_flight(Some(account_rate(&account.pacing)));
    channel::most_at_once(account.channel).map_or(paced, |most| paced.min(most))
}

/// The slowest of the limits of account, campaign and provider.
pub(crate) fn slowest_rate(snapshot: &Snapshot) -> Option<model::Rate> {
    let Snapshot { account, campaign, sender, .. } = snapshot;
    let allowed = channel::limits(sender).channel;
    pace::slowest([Some(account_rate(&account.pacing)), campaign.pacing.limit, allowed])
}

fn of(rate: model::Rate) -> Rate {
    Rate::new(rate.max, Duration::from_millis(rate.per_ms))
}

#[cfg(test)]
mod tests {
    use stampede_model::campaign as model;

    use super::*;

    #[test]
    fn pauses_are_random_between_their_bounds() {
        let spacing = Some(model::Spacing { min_ms: 1_000, max_ms: 3_000 });
        let pacing = Pacing { spacing, ..Pacing::default() };
        let length = |random| pause(&pacing, random).unwrap().length.as_millis();
        assert_eq!([length(0.0), length(0.5), length(0.999_9)], [1_000, 2_000, 3_000]);
        let rest = Some(model::Rest { every: 50, for_ms: 60_000 });
        let resting = pause(&Pacing { rest, ..Pacing::default() }, 0.5).unwrap();
        assert_eq!(resting.length, Duration::ZERO);
        assert_eq!(resting.rest.unwrap().every, 50);
        assert_eq!(pause(&Pacing::default(), 0.5), None);
    }

    #[test]
    fn limits_that_people_set_have_a_history_of_their_own() {
        let warm_up = Some(model::WarmUp { start: 3, factor: 2.0, max: 9 });
        let limit = Some(model::Rate { max: 5, per_ms: 1_000 });
        let pacing = Pacing { limit, daily_cap: Some(7), ..Pacing::default() };
        let mut snapshot = crate::snapshot::tests::snapshot(pacing.clone());
        snapshot.account.pacing = Pacing { warm_up, ..pacing };
        let (account, campaign) = (snapshot.account.id.clone(), snapshot.campaign.id);
        let now: Timestamp = "2026-11-18T12:00:00Z".parse().unwrap();
        let mut asks = spacing_and_caps(&snapshot, "ann", now, 0.5);
        asks.extend(rates(&snapshot, "ann"));
        let of_account = || SendScope::Account(account.clone());
        let of_campaign = SendScope::Campaign(campaign);
        let histories = asks.iter().filter(|ask| ask.has_history).map(|ask| {
            let window = Duration::from_millis(ask.otherwise.unwrap().per_ms);
            let filter = sends_of(&snapshot, ask, window, now);
            assert!(!filter.once_per_address);
            (ask.limit.clone(), filter.scope, filter.since.to_string())
        });
        let wanted = [
            ("day:console".to_owned(), of_account(), "2026-11-17T12:00:00Z"),
            (format!("day:campaign:{campaign}"), of_campaign.clone(), "2026-11-17T12:00:00Z"),
            ("warmup:console:2026-11-18".to_owned(), of_account(), "2026-11-18T00:00:00Z"),
            (format!("campaign:{campaign}"), of_campaign, "2026-11-18T11:59:59Z"),
            ("account:console".to_owned(), of_account(), "2026-11-18T11:59:59Z"),
        ];
        let wanted = wanted.map(|(name, scope, since)| (name, scope, since.to_owned()));
        assert_eq!(histories.collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn each_window_of_a_pair_is_a_limit_of_its_own() {
        let rates = [(1, 1_000), (20, 60_000)].map(|(max, per_ms)| model::Rate { max, per_ms });
        let asks = named("pair:bot:0a", &rates);
        let names: Vec<&str> = asks.iter().map(|ask| ask.limit.as_str()).collect();
        assert_eq!(names, ["pair:bot:0a", "pair:bot:0a:60000"]);
        assert_eq!(asks[1].otherwise, Some(Rate::new(20, Duration::from_secs(60))));
        assert!(named("pair:bot:0a", &[]).is_empty());
    }

    #[test]
    fn names_of_limits_hold_no_address() {
        let account = AccountId::console();
        let name = pair_limit(&account, "ann@example.com");
        assert_eq!(name, pair_limit(&account, "ann@example.com"));
        assert_ne!(name, pair_limit(&account, "bob@example.com"));
        assert!(!name.contains("ann"), "{name}");
    }
}

//! Limits that are changed while they are in use. For a moment some callers still ask with the former limit.

use std::time::{Duration, Instant};

use stampede_broker::{Limits, Permit, Rate, Taken};
use stampede_testkit::eventually;
use tokio::time::sleep;

use crate::stage::{SOON, Stage, throughout};

const MINUTE: Duration = Duration::from_secs(60);

fn ms(length: u64) -> Duration {
    Duration::from_millis(length)
}

async fn take(limits: &Limits, name: &str, rate: Rate) -> Option<Box<Taken>> {
    match limits.take(name, Some(rate)).await.unwrap() {
        Permit::Granted(taken) => Some(taken),
        Permit::Wait(_) => None,
    }
}

async fn until_granted(limits: &Limits, name: &str, rate: Rate) -> Box<Taken> {
    eventually(SOON, || take(limits, name, rate)).await
}

#[tokio::test]
async fn a_caller_with_the_former_shorter_window_forgets_nothing() {
    let stage = Stage::start().await;
    let limits = stage.broker.limits();
    let (short, long) = (Rate::new(3, ms(100)), Rate::new(3, MINUTE));
    for _ in 0..3 {
        assert!(take(&limits, "sms", long).await.is_some());
    }
    assert!(take(&limits, "sms", long).await.is_none());
    until_granted(&limits, "sms", short).await;
    // Much longer than the short window: it would have forgotten everything.
    throughout(ms(500), || async { assert!(take(&limits, "sms", long).await.is_none()) }).await;
    until_granted(&limits, "sms", short).await;
    throughout(ms(500), || async { assert!(take(&limits, "sms", long).await.is_none()) }).await;
    let remembered: i64 = stage.ask("ZCARD stampede:limit:{sms}:granted").await;
    assert_eq!(remembered, 5);
}

#[tokio::test]
async fn a_window_that_is_not_asked_with_any_more_is_forgotten() {
    let stage = Stage::start().await;
    let limits = stage.broker.limits();
    let (short, long) = (Rate::new(3, ms(50)), Rate::new(3, ms(400)));
    assert!(take(&limits, "sms", long).await.is_some());
    // Only the last grants of the short window are remembered in the end.
    eventually(SOON, || async {
        take(&limits, "sms", short).await?;
        let windows: Option<String> = stage.ask("GET stampede:limit:{sms}:window").await;
        windows?.starts_with("50000:").then_some(())
    })
    .await;
    for key in ["granted", "window"] {
        let key = format!("stampede:limit:{{sms}}:{key}");
        let left: i64 = stage.ask(&format!("PTTL {key}")).await;
        assert!(left <= 600, "{key} {left}");
    }
    let remembered: i64 = stage.ask("ZCARD stampede:limit:{sms}:granted").await;
    assert!(remembered <= 10, "{remembered}");
}

#[tokio::test]
async fn a_window_is_kept_when_a_longer_one_is_forgotten() {
    let stage = Stage::start().await;
    let limits = stage.broker.limits();
    let (long, short) = (Rate::new(9, ms(600)), Rate::new(9, ms(20)));
    for number in 0..20 {
        let name = format!("sms:{number}");
        let begin = Instant::now();
        assert!(take(&limits, &name, long).await.is_some());
        // Nobody asks with the long window any more, and others with this one.
        sleep(ms(660)).await;
        let asked = Instant::now();
        assert!(take(&limits, &name, Rate::new(9, ms(400))).await.is_some());
        // Grants are kept for the long window until now.
        sleep(ms(710).saturating_sub(begin.elapsed())).await;
        assert!(take(&limits, &name, short).await.is_some());
        let second = take(&limits, &name, Rate::new(1, ms(400))).await;
        // A machine that was held up has lost this one.
        if asked.elapsed() < ms(390) {
            assert!(second.is_none(), "the short window has forgotten what the other one counts");
            return;
        }
    }
    panic!("the machine was held up each time");
}

/// A permit of a long window may be used for longer than one of a short window. The short one counts it until then.
#[tokio::test]
async fn a_permit_that_is_used_late_counts_as_late_under_a_shorter_window_too() {
    let stage = Stage::start().await;
    let limits = stage.broker.limits();
    let mut seen = 0;
    for number in 0..20 {
        let name = format!("sms:{number}");
        let taken = take(&limits, &name, Rate::new(1, Duration::from_secs(2))).await.unwrap();
        let granted = Instant::now();
        // As long as it takes to prepare a message.
        sleep(ms(40)).await;
        let begun = Instant::now();
        // A machine that was held up has lost this one.
        if !taken.is_fresh() {
            continue;
        }
        assert!(begun - granted >= ms(40));
        until_granted(&limits, &name, Rate::new(1, ms(100))).await;
        let apart = begun.elapsed();
        assert!(apart >= ms(100), "{apart:?}");
        seen += 1;
        if seen == 3 {
            return;
        }
    }
    panic!("no permit was fresh after 40 ms");
}

/// One request for a permit.
struct Asked {
    /// When it was sent, and answered.
    sent: Instant,
    answered: Instant,
    rate: Rate,
    is_granted: bool,
    /// When an operation began with it, if one did.
    begun: Option<Instant>,
}

/// Asks for permits one after the other, and changes the limit now and then.
async fn random_history(limits: &Limits, name: &str, seed: u64) -> Vec<Asked> {
    let mut random = fastrand::Rng::with_seed(seed);
    let rates = [(3, 60), (5, 60), (2, 200), (9, 200), (6, 500), (4, 1_500)];
    let rates = rates.map(|(max, per)| Rate::new(max, ms(per)));
    let (mut rate, mut former) = (rates[0], rates[1]);
    let mut history = Vec::new();
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(6) {
        if random.u8(..100) < 4 {
            (former, rate) = (rate, rates[random.usize(..rates.len())]);
        }
        // A caller that does not know of the change yet.
        let used = if random.u8(..100) < 10 { former } else { rate };
        let otherwise = if random.bool() {
            limits.set(name, used).await.unwrap();
            None
        } else {
            limits.unset(name).await.unwrap();
            Some(used)
        };
        let sent = Instant::now();
        let permit = limits.take(name, otherwise).await.unwrap();
        let answered = Instant::now();
        let (mut is_granted, mut begun) = (false, None);
        match permit {
            Permit::Wait(wait) => sleep(wait.min(ms(random.u64(..20)))).await,
            Permit::Granted(taken) => {
                sleep(ms([0, random.u64(..60)][random.usize(..2)])).await;
                let now = Instant::now();
                if taken.is_fresh() {
                    (is_granted, begun) = (true, Some(now));
                } else {
                    taken.give_back().await.unwrap();
                    continue;
                }
            }
        }
        history.push(Asked { sent, answered, rate: used, is_granted, begun });
    }
    history
}

impl Asked {
    fn per(&self) -> Duration {
        ms(self.rate.per_ms)
    }

    /// The operations before this one that its window holds, of those that the limit has to remember: since windows as long
    /// as this one are asked with, without a pause of such a length.
    fn held_at_least(&self, before: &[Asked]) -> usize {
        let (mut first, mut next) = (before.len(), self);
        for (number, other) in before.iter().enumerate().rev() {
            if other.rate.per_ms >= self.rate.per_ms {
                if next.answered - other.sent > self.per() {
                    break;
                }
                (first, next) = (number, other);
            }
        }
        let from = |begun: &Instant| self.begun.is_some_and(|now| now - *begun < self.per());
        before[first..].iter().filter_map(|other| other.begun).filter(from).count()
    }

    /// The operations before this request that its window may hold at most.
    fn held_at_most(&self, before: &[Asked]) -> usize {
        let slack = |other: &Asked| ms((other.rate.per_ms / 40).clamp(5, 50) + 1);
        let may_count = |other: &&Asked| {
            other.is_granted && other.answered + slack(other) + self.per() > self.sent
        };
        before.iter().filter(may_count).count()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_window_is_kept_and_reached_through_random_changes_of_the_limit() {
    let stage = Stage::start().await;
    let limits = stage.broker.limits();
    let seed = fastrand::u64(..);
    let histories = (0..3).map(|number| {
        let (limits, name) = (limits.clone(), format!("sms:{number}"));
        tokio::spawn(async move { random_history(&limits, &name, seed.wrapping_add(number)).await })
    });
    for history in histories.collect::<Vec<_>>() {
        let history = history.await.unwrap();
        for (number, asked) in history.iter().enumerate() {
            let (before, max) = (&history[..number], asked.rate.max as usize);
            if asked.begun.is_some() {
                let held = asked.held_at_least(before);
                assert!(held < max, "seed {seed}: {held} before {number}, {:?}", asked.rate);
            } else {
                let held = asked.held_at_most(before);
                assert!(held >= max, "seed {seed}: {held} before {number}, {:?}", asked.rate);
            }
        }
        let begun = history.iter().filter(|asked| asked.begun.is_some()).count();
        assert!(begun > 20, "seed {seed}: {begun} of {}", history.len());
    }
}

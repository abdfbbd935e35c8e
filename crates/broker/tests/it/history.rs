//! Limits whose callers have a history: windows that become longer, and a Redis that has lost its data.

use std::time::{Duration, Instant};

use stampede_broker::{Ask, History, Limits, PastOperation, Rate, Taking};
use tokio::time::sleep;

use crate::stage::{SOON, Stage};

const MINUTE: Duration = Duration::from_secs(60);
const NAME: &str = "account:1";

fn ms(length: u64) -> Duration {
    Duration::from_millis(length)
}

/// A caller that remembers when its operations began.
struct Caller {
    limits: Limits,
    begun: Vec<Instant>,
}

impl Caller {
    fn new(stage: &Stage) -> Self {
        Self { limits: stage.broker.limits(), begun: Vec::new() }
    }

    async fn ask(&self, rate: Rate) -> Taking {
        let ask = Ask { has_history: true, ..Ask::at(NAME, rate) };
        self.limits.take_all("test", &[ask]).await.unwrap()
    }

    /// The operations of the window, the newest `most` of them.
    fn history(&self, window: Duration, most: usize) -> History {
        let read = Instant::now();
        let mut operations: Vec<PastOperation> = Vec::new();
        for (number, begun) in self.begun.iter().enumerate().rev() {
            let age = read - *begun;
            if age > window {
                break;
            }
            if operations.len() == most {
                let complete_for = operations.last().map_or(window, |oldest| oldest.least);
                return History { window, operations, complete_for, read };
            }
            operations.push(PastOperation { key: format!("op:{number}"), most: age, least: age });
        }
        History { window, operations, complete_for: window, read }
    }

    async fn remember(&self, rate: Rate) -> u64 {
        let history = self.history(ms(rate.per_ms), rate.max as usize);
        self.limits.remember(NAME, &history).await.unwrap()
    }

    /// Begins an operation if the limit allows it; `false`: it has to wait.
    async fn begin(&mut self, rate: Rate) -> bool {
        for _ in 0..3 {
            match self.ask(rate).await {
                Taking::Granted(_) => {
                    self.begun.push(Instant::now());
                    return true;
                }
                Taking::Wait { .. } => return false,
                Taking::Forgotten { ask, rate: told } => {
                    assert_eq!((ask.limit.as_str(), told), (NAME, rate));
                    self.remember(rate).await;
                }
            }
        }
        panic!("a history that was told is not forgotten");
    }

    /// Begins so many operations as fast as the limit allows.
    async fn begin_many(&mut self, count: usize, rate: Rate) {
        let until = Instant::now() + SOON;
        let wanted = self.begun.len() + count;
        while self.begun.len() < wanted {
            if !self.begin(rate).await {
                sleep(ms(5)).await;
            }
            assert!(Instant::now() < until, "{} of {wanted}", self.begun.len());
        }
    }
}

async fn counted(stage: &Stage) -> i64 {
    stage.ask(&format!("ZCARD stampede:limit:{{{NAME}}}:granted")).await
}

#[tokio::test]
async fn a_limit_that_nobody_has_asked_for_is_forgotten_once() {
    let stage = Stage::start().await;
    let caller = Caller::new(&stage);
    let rate = Rate::new(2, MINUTE);
    assert!(matches!(caller.ask(rate).await, Taking::Forgotten { .. }));
    assert!(matches!(caller.ask(rate).await, Taking::Forgotten { .. }), "nothing was granted");
    // A Redis that lost its data meanwhile has to be asked first.
    stage.ask::<()>("FLUSHALL").await;
    assert_eq!(caller.remember(rate).await, 0);
    assert!(matches!(caller.ask(rate).await, Taking::Forgotten { .. }));
    assert_eq!(caller.remember(rate).await, 0);
    for _ in 0..2 {
        assert!(matches!(caller.ask(rate).await, Taking::Granted(_)));
    }
    assert!(matches!(caller.ask(rate).await, Taking::Wait { .. }));
    // It is known for an hour after the last call, although the grants are gone then.
    let left: u64 = stage.ask(&format!("PTTL stampede:limit:{{{NAME}}}:window")).await;
    assert!((3_600_000..3_700_000).contains(&left), "{left}");
    let left: u64 = stage.ask(&format!("PTTL stampede:limit:{{{NAME}}}:granted")).await;
    assert!(left < 61_000, "{left}");
    // A closed limit needs no history.
    let closed = Ask { has_history: true, ..Ask::at("closed", Rate::new(0, MINUTE)) };
    let refused = caller.limits.take_all("test", &[closed]).await.unwrap();
    assert!(matches!(refused, Taking::Wait { .. }), "{refused:?}");
}

#[tokio::test]
async fn a_window_that_becomes_longer_holds_what_had_left_the_shorter_one() {
    let stage = Stage::start().await;
    let mut caller = Caller::new(&stage);
    let (short, long) = (Rate::new(11, ms(1_000)), Rate::new(12, MINUTE));
    caller.begin_many(11, short).await;
    sleep(ms(1_200)).await;
    assert!(matches!(caller.ask(long).await, Taking::Forgotten { .. }));
    // Callers that do not know of the change yet are not held up.
    assert!(matches!(caller.ask(short).await, Taking::Granted(_)));
    caller.begun.push(Instant::now());
    assert!(!caller.begin(long).await, "twelve have begun within the minute");
    // None was counted twice.
    assert_eq!(counted(&stage).await, 12);
    assert!(caller.begin(Rate::new(13, MINUTE)).await);
    assert!(!caller.begin(Rate::new(13, MINUTE)).await);
}

#[tokio::test]
async fn a_redis_that_has_lost_its_data_is_told_of_the_window() {
    let stage = Stage::start().await;
    let mut caller = Caller::new(&stage);
    let rate = Rate::new(8, MINUTE);
    caller.begin_many(6, rate).await;
    stage.ask::<()>("FLUSHALL").await;
    caller.begin_many(2, rate).await;
    assert!(!caller.begin(rate).await);
    stage.ask::<()>("FLUSHALL").await;
    assert!(!caller.begin(rate).await);
    assert_eq!(counted(&stage).await, 8);
}

#[tokio::test]
async fn permits_of_a_redis_that_loses_its_data_meanwhile_are_not_exchanged() {
    let stage = Stage::start().await;
    let mut caller = Caller::new(&stage);
    let rate = Rate::new(8, MINUTE);
    caller.begin_many(3, rate).await;
    let Taking::Granted(permits) = caller.ask(rate).await else { panic!("five are left") };
    stage.ask::<()>("FLUSHALL").await;
    sleep(ms(60)).await;
    assert!(!permits.are_fresh());
    assert!(matches!(permits.refreshed().await.unwrap(), Taking::Forgotten { .. }));
    caller.begin_many(5, rate).await;
    assert!(!caller.begin(rate).await);
}

#[tokio::test]
async fn callers_that_tell_the_same_history_count_it_once() {
    let stage = Stage::start().await;
    let mut caller = Caller::new(&stage);
    let rate = Rate::new(2_500, MINUTE);
    let begun = Instant::now();
    caller.begun = vec![begun; 2_400];
    sleep(ms(10)).await;
    assert!(matches!(caller.ask(rate).await, Taking::Forgotten { .. }));
    let told = tokio::join!(caller.remember(rate), caller.remember(rate), caller.remember(rate));
    assert!(told.0 + told.1 + told.2 >= 2_400, "{told:?}");
    assert_eq!(counted(&stage).await, 2_400);
    assert_eq!(caller.remember(rate).await, 0);
    caller.begin_many(100, rate).await;
    assert!(!caller.begin(rate).await);
}

#[tokio::test]
async fn a_limit_that_is_raised_after_it_was_told_the_newest_is_told_the_rest() {
    let stage = Stage::start().await;
    let mut caller = Caller::new(&stage);
    caller.begin_many(10, Rate::new(1, ms(10))).await;
    sleep(ms(200)).await;
    assert!(!caller.begin(Rate::new(3, MINUTE)).await);
    let before = counted(&stage).await;
    assert!(before < 10, "only the newest were told: {before}");
    assert!(!caller.begin(Rate::new(10, MINUTE)).await);
    assert_eq!(counted(&stage).await, 10);
    assert!(caller.begin(Rate::new(11, MINUTE)).await);
    assert!(!caller.begin(Rate::new(11, MINUTE)).await);
}

#[tokio::test]
async fn a_later_limit_that_has_forgotten_gives_back_the_permits_before() {
    let stage = Stage::start().await;
    let caller = Caller::new(&stage);
    let rate = Rate::new(1, MINUTE);
    let asks = [Ask::at("pair", rate), Ask { has_history: true, ..Ask::at(NAME, rate) }];
    for _ in 0..2 {
        let refused = caller.limits.take_all("test", &asks).await.unwrap();
        assert!(matches!(refused, Taking::Forgotten { .. }), "{refused:?}");
    }
    caller.remember(rate).await;
    let taken = caller.limits.take_all("test", &asks).await.unwrap();
    assert!(matches!(taken, Taking::Granted(_)), "{taken:?}");
}

#[tokio::test]
async fn a_key_that_counts_once_counts_once_in_a_history_too() {
    let stage = Stage::start().await;
    let limits = stage.broker.limits();
    let ask = |person: &str, max| Ask {
        has_history: true,
        counts_as: Some(person.to_owned()),
        ..Ask::at(NAME, Rate::new(max, MINUTE))
    };
    let forgotten = limits.take_all("test", &[ask("ann", 2)]).await.unwrap();
    assert!(matches!(forgotten, Taking::Forgotten { .. }), "{forgotten:?}");
    let past = |person: &str, age| PastOperation { key: person.to_owned(), most: age, least: age };
    let operations = vec![past("ann", ms(1_000)), past("bob", ms(2_000)), past("ann", ms(3_000))];
    let history =
        History { window: MINUTE, operations, complete_for: MINUTE, read: Instant::now() };
    limits.remember(NAME, &history).await.unwrap();
    assert_eq!(counted(&stage).await, 2);
    let granted = limits.take_all("test", &[ask("ann", 2)]).await.unwrap();
    assert!(matches!(granted, Taking::Granted(_)), "{granted:?}");
    let refused = limits.take_all("test", &[ask("cleo", 2)]).await.unwrap();
    assert!(matches!(refused, Taking::Wait { .. }), "{refused:?}");
}

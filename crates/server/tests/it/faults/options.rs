//! What a campaign is about: its length, its seed and the servers it is played on, from the environment.

use std::fmt;
use std::time::Duration;

/// Where records are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoreKind {
    /// A file in the data directory.
    Sqlite,
    /// A server.
    Postgres,
}

/// Where jobs are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BrokerKind {
    /// Our own, in the node's process.
    Engine,
    /// redis-server.
    Redis,
}

/// A pair of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Combination {
    pub(super) store: StoreKind,
    pub(super) broker: BrokerKind,
}

impl Combination {
    /// Two nodes where they can share everything.
    pub(super) fn nodes(self) -> usize {
        match (self.store, self.broker) {
            (StoreKind::Postgres, BrokerKind::Redis) => 2,
            _ => 1,
        }
    }

    /// The words of `scripts/faults` for both.
    pub(super) fn words(self) -> [&'static str; 2] {
        let store = match self.store {
            StoreKind::Sqlite => "sqlite",
            StoreKind::Postgres => "postgres",
        };
        let broker = match self.broker {
            BrokerKind::Engine => "engine",
            BrokerKind::Redis => "redis",
        };
        [store, broker]
    }
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [store, broker] = self.words();
        write!(f, "{store} + {broker}")
    }
}

/// Settings of a campaign.
#[derive(Debug, Clone)]
pub(super) struct Options {
    pub(super) combination: Combination,
    /// How long faults are played.
    pub(super) length: Duration,
    pub(super) seed: u64,
    /// `ENGINE_FSYNC` of the nodes and `appendfsync` of Redis.
    pub(super) fsync: String,
    /// Logs and books are kept, whatever was found.
    pub(super) keep_logs: bool,
}

impl Options {
    /// As the environment says (`scripts/faults`); `length` and a new seed otherwise.
    pub(super) fn read(combination: Combination, length: Duration) -> Self {
        let number = |name: &str| {
            said(name).map(|text| {
                text.parse::<f64>().unwrap_or_else(|_| panic!("{name}={text}: use a number"))
            })
        };
        let length = number("STAMPEDE_FAULTS_MINUTES")
            .map_or(length, |minutes| Duration::from_secs_f64(minutes * 60.0));
        let seed = number("STAMPEDE_FAULTS_SEED")
            .map_or_else(|| fastrand::u64(..1_000_000), |seed| seed as u64);
        let fsync = said("STAMPEDE_FAULTS_FSYNC").unwrap_or_else(|| "everysec".to_owned());
        let keep_logs = said("STAMPEDE_FAULTS_KEEP_LOGS").is_some();
        Self { combination, length, seed, fsync, keep_logs }
    }

    /// The combination that the environment names.
    pub(super) fn combination() -> Combination {
        let store = match said("STAMPEDE_FAULTS_STORE").as_deref() {
            None | Some("sqlite") => StoreKind::Sqlite,
            Some("postgres") => StoreKind::Postgres,
            Some(other) => panic!("STAMPEDE_FAULTS_STORE={other}: use sqlite or postgres"),
        };
        let broker = match said("STAMPEDE_FAULTS_BROKER").as_deref() {
            None | Some("engine") => BrokerKind::Engine,
            Some("redis") => BrokerKind::Redis,
            Some(other) => panic!("STAMPEDE_FAULTS_BROKER={other}: use engine or redis"),
        };
        Combination { store, broker }
    }
}

fn said(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

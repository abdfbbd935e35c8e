//! The plan of a campaign: which fault begins when and lasts how long. The same seed gives the same plan.
//!
//! Every kind that the combination of servers allows comes once, in a random order. Then chance decides. Faults overlap, but never
//! two on the same target: a process that is dead cannot be frozen.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use fastrand::Rng;

use super::options::{BrokerKind, Combination, StoreKind};

/// The process, connection or disk that a fault hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Target {
    /// The server process of a node, by its number; `Kill` and `Freeze` leave its workers alone.
    Node(usize),
    /// A node's server process and all its workers, as if the machine had crashed.
    Machine(usize),
    /// Some worker process of a node.
    Worker(usize),
    /// Some process that consumes the campaign's own queue.
    Consumer,
    /// redis-server.
    Redis,
    /// PostgreSQL with all its backends.
    Postgres,
    /// Connections of clients to a node.
    HttpOf(usize),
    /// Connections to Redis: a node's, or those of programs outside to the engine.
    RedisOf(usize),
    /// Connections of a node to PostgreSQL.
    PostgresOf(usize),
    /// The disk with data directories and PDFs.
    Disk,
    /// The clock of all nodes and their workers.
    Clock,
}

/// The kind of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    /// `kill -9`; started again at the end of the fault.
    Kill,
    /// SIGSTOP, and SIGCONT at the end.
    Freeze,
    /// Open connections are reset.
    Reset,
    /// Nothing goes through, in no direction; it arrives when the fault ends.
    Silence,
    /// One answer is thrown away and its connection reset.
    LostAnswer,
    /// No room on the disk.
    Full,
    /// Writes and syncs take long.
    Slow,
    /// Writes fail with an input/output error, some of them.
    WritesFail,
    /// Syncs fail with an input/output error.
    SyncsFail,
    /// The clock of the day jumps.
    StepForwards,
    /// The clock of the day jumps back.
    StepBackwards,
}

/// One fault.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fault {
    pub(super) begins: Duration,
    pub(super) lasts: Duration,
    pub(super) kind: Kind,
    pub(super) target: Target,
    /// Chooses among what is there at that moment: a worker, a connection; and how far a clock jumps.
    pub(super) chance: u64,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", name(self.kind, self.target))
    }
}

/// The name of a kind of fault in the report.
pub(super) fn name(kind: Kind, target: Target) -> String {
    let target = match target {
        Target::Node(_) => "node",
        Target::Machine(_) => "node with workers",
        Target::Worker(_) => "worker",
        Target::Consumer => "consumer",
        Target::Redis => "Redis",
        Target::Postgres => "PostgreSQL",
        Target::HttpOf(_) => "HTTP",
        Target::RedisOf(_) => "way to Redis",
        Target::PostgresOf(_) => "way to PostgreSQL",
        Target::Disk => "disk",
        Target::Clock => "clock",
    };
    let kind = match kind {
        Kind::Kill => "kill -9",
        Kind::Freeze => "SIGSTOP",
        Kind::Reset => "connections reset",
        Kind::Silence => "silence",
        Kind::LostAnswer => "answer lost",
        Kind::Full => "full",
        Kind::Slow => "slow",
        Kind::WritesFail => "writes fail",
        Kind::SyncsFail => "syncs fail",
        Kind::StepForwards => "step forwards",
        Kind::StepBackwards => "step backwards",
    };
    format!("{target}: {kind}")
}

/// All faults that make sense for a combination.
pub(super) fn possible(combination: Combination) -> Vec<(Kind, Target)> {
    use Kind::{
        Freeze, Full, Kill, LostAnswer, Reset, Silence, Slow, StepBackwards, StepForwards,
        SyncsFail, WritesFail,
    };
    let mut all = vec![(Kill, Target::Consumer), (Freeze, Target::Consumer)];
    for node in 0..combination.nodes() {
        all.extend([
            (Kill, Target::Node(node)),
            (Kill, Target::Machine(node)),
            (Kill, Target::Worker(node)),
        ]);
        all.extend([
            (Freeze, Target::Node(node)),
            (Freeze, Target::Machine(node)),
            (Freeze, Target::Worker(node)),
        ]);
        let mut ways = vec![Target::HttpOf(node), Target::RedisOf(node)];
        if combination.store == StoreKind::Postgres {
            ways.push(Target::PostgresOf(node));
        }
        for way in ways {
            all.extend([(Reset, way), (Silence, way), (LostAnswer, way)]);
        }
    }
    if combination.broker == BrokerKind::Redis {
        all.extend([(Kill, Target::Redis), (Freeze, Target::Redis)]);
    }
    if combination.store == StoreKind::Postgres {
        all.extend([(Kill, Target::Postgres), (Freeze, Target::Postgres)]);
    }
    all.extend([Full, Slow, WritesFail, SyncsFail].map(|kind| (kind, Target::Disk)));
    all.extend([StepForwards, StepBackwards].map(|kind| (kind, Target::Clock)));
    all
}

/// Longest pause between the beginnings of two faults.
const LONGEST_PAUSE: Duration = Duration::from_millis(1_600);
/// A process that was killed is left dead for at most this long.
const LONGEST_DEATH: Duration = Duration::from_secs(4);
/// Every other fault lasts at most this long.
const LONGEST_FAULT: Duration = Duration::from_secs(6);

/// The faults of a campaign in the order in which they begin; all have ended after `length`.
pub(super) fn plan(combination: Combination, length: Duration, seed: u64) -> Vec<Fault> {
    let mut rng = Rng::with_seed(seed);
    let kinds = possible(combination);
    let mut first = kinds.clone();
    rng.shuffle(&mut first);
    let mut busy: HashMap<Target, Duration> = HashMap::new();
    let (mut faults, mut now) = (Vec::new(), Duration::from_secs(2));
    // So close that every kind has its turn, if the campaign is long enough for that.
    let pause =
        LONGEST_PAUSE.min(2 * length.saturating_sub(now + LONGEST_FAULT) / kinds.len() as u32);
    while now + Duration::from_millis(300) < length {
        let (kind, target) = first.pop().unwrap_or_else(|| kinds[rng.usize(..kinds.len())]);
        let most = if kind == Kind::Kill { LONGEST_DEATH } else { LONGEST_FAULT }.min(length - now);
        let lasts = Duration::from_millis(300).max(most.mul_f64(rng.f64()));
        let (chance, wait) = (rng.u64(..), pause.mul_f64(rng.f64()));
        let free = hit_with(target)
            .iter()
            .all(|target| busy.get(target).is_none_or(|until| *until <= now));
        if free {
            busy.extend(hit_with(target).into_iter().map(|target| (target, now + lasts)));
            faults.push(Fault { begins: now, lasts, kind, target, chance });
            now += wait;
        } else if first.is_empty() {
            now += wait / 8;
        } else {
            // Its turn comes later.
            first.insert(0, (kind, target));
            now += wait / 8;
        }
    }
    faults
}

/// All targets that are not free while one is hit.
fn hit_with(target: Target) -> Vec<Target> {
    match target {
        Target::Node(node) | Target::Machine(node) => {
            vec![Target::Node(node), Target::Machine(node)]
        }
        Target::Worker(node) => vec![Target::Worker(node), Target::Machine(node)],
        other => vec![other],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Combination = Combination { store: StoreKind::Postgres, broker: BrokerKind::Redis };

    #[test]
    fn a_seed_gives_the_same_plan_again_with_every_kind_in_it() {
        let length = Duration::from_secs(60);
        let faults = plan(BOTH, length, 7);
        assert_eq!(faults, plan(BOTH, length, 7));
        assert_ne!(faults, plan(BOTH, length, 8));
        for (kind, target) in possible(BOTH) {
            assert!(
                faults.iter().any(|fault| (fault.kind, fault.target) == (kind, target)),
                "{}",
                name(kind, target)
            );
        }
        assert!(faults.iter().all(|fault| fault.begins + fault.lasts <= length));
    }

    #[test]
    fn no_target_has_two_faults_at_a_time() {
        let faults = plan(BOTH, Duration::from_secs(600), 1);
        assert!(faults.len() > 200, "{}", faults.len());
        for (number, fault) in faults.iter().enumerate() {
            let end = fault.begins + fault.lasts;
            let later = faults[number + 1..].iter().take_while(|other| other.begins < end);
            for other in later {
                assert!(!hit_with(fault.target).contains(&other.target), "{fault:?} {other:?}");
            }
        }
    }
}

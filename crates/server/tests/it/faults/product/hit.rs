//! Beginning and ending a fault.

use std::time::Duration;

use stampede_testkit::{Postgres, Proxy, Redis, Signal, Wrong, kill, signal};

use super::{CONSUMERS, Place, Product};
use crate::faults::plan::{Fault, Kind, Target};

/// Furthest that a clock is wrong. Delayed jobs wait for the clock, so it is also what they may be late.
const FURTHEST_MS: i64 = 20_000;

impl Product {
    pub(super) fn begin(&mut self, fault: &Fault) {
        let chance = fault.chance as usize;
        match (fault.kind, fault.target) {
            (Kind::Kill, Target::Node(node)) => {
                self.nodes[node].app.kill();
                self.nodes[node].dead = true;
            }
            (Kind::Kill, Target::Machine(node)) => {
                self.nodes[node].app.kill_everything();
                self.nodes[node].dead = true;
            }
            (Kind::Kill, Target::Worker(node)) => {
                some(&self.nodes[node].app.workers(), chance).into_iter().for_each(kill)
            }
            (Kind::Kill, Target::Consumer) => self.consumers[chance % CONSUMERS].kill(),
            (Kind::Kill, Target::Redis) => self.redis.iter_mut().for_each(Redis::kill),
            (Kind::Kill, Target::Postgres) => self.postgres.iter_mut().for_each(Postgres::kill),
            (Kind::Freeze, Target::Consumer) => self.consumers[chance % CONSUMERS].freeze(),
            (Kind::Freeze, Target::Redis) => self.redis.iter_mut().for_each(Redis::freeze),
            (Kind::Freeze, Target::Postgres) => self.postgres.iter_mut().for_each(Postgres::freeze),
            (Kind::Freeze, target) => {
                let pids = self.pids(target, chance);
                pids.iter().for_each(|pid| signal(*pid, Signal::STOP));
                self.frozen.insert(target, pids);
            }
            (Kind::Reset, target) => {
                self.way(target).reset(|number| number % 2 == fault.chance % 2);
            }
            (Kind::Silence, target) => self.way(target).silence(),
            (Kind::LostAnswer, target) => self.way(target).swallow_next_answer(),
            (Kind::Full, _) => match &self.disk {
                Place::OfItsOwn(disk) => disk.fill(),
                Place::Plain(_) => {
                    self.surprises.count("not played, because it needs namespaces: full disk")
                }
            },
            (Kind::Slow, _) => self.faults.change(|wrong| {
                wrong.write = Duration::from_micros(500 + fault.chance % 20_000);
                wrong.sync = Duration::from_millis(20 + fault.chance % 400);
            }),
            (Kind::WritesFail, _) => self.faults.change(|wrong| {
                (wrong.writes_fail, wrong.one_in) = (true, 1 + fault.chance as i64 % 4);
            }),
            (Kind::SyncsFail, _) => {
                self.faults.change(|wrong| (wrong.syncs_fail, wrong.one_in) = (true, 1))
            }
            (Kind::StepForwards | Kind::StepBackwards, _) => {
                let step = 1_000 + (fault.chance % 15_000) as i64;
                let step = if fault.kind == Kind::StepForwards { step } else { -step };
                self.faults.change(|wrong| {
                    wrong.clock_ms = (wrong.clock_ms + step).clamp(-FURTHEST_MS, FURTHEST_MS);
                });
            }
            (Kind::Kill, _) => unreachable!("{fault:?}"),
        }
    }

    pub(super) async fn end(&mut self, fault: &Fault) {
        let chance = fault.chance as usize;
        match (fault.kind, fault.target) {
            (Kind::Kill, Target::Node(node) | Target::Machine(node)) => self.start_again(node),
            (Kind::Kill, Target::Consumer) => {
                let name = format!("consumer-{}", fault.begins.as_millis());
                self.consumers[chance % CONSUMERS] = self.start_consumer(&name);
            }
            (Kind::Kill, Target::Redis) => {
                if let Some(redis) = &mut self.redis {
                    redis.start_again().await;
                }
            }
            (Kind::Kill, Target::Postgres) => {
                if let Some(postgres) = &mut self.postgres {
                    postgres.start_again().await;
                }
            }
            (Kind::Freeze, Target::Consumer) => self.consumers[chance % CONSUMERS].thaw(),
            (Kind::Freeze, Target::Redis) => self.redis.iter_mut().for_each(Redis::thaw),
            (Kind::Freeze, Target::Postgres) => self.postgres.iter_mut().for_each(Postgres::thaw),
            (Kind::Freeze, target) => {
                let pids = self.frozen.remove(&target).unwrap_or_default();
                pids.into_iter().for_each(|pid| signal(pid, Signal::CONT));
            }
            (Kind::Silence, target) => self.way(target).mend(),
            (Kind::Full, _) => {
                if let Place::OfItsOwn(disk) = &self.disk {
                    disk.make_room();
                }
            }
            (Kind::Slow | Kind::WritesFail | Kind::SyncsFail, _) => {
                self.faults.change(|wrong| {
                    *wrong = Wrong { clock_ms: wrong.clock_ms, ..Wrong::default() }
                });
            }
            // A worker is started again by its node; a connection by those who use it; a clock stays wrong until its next step.
            (
                Kind::Kill
                | Kind::Reset
                | Kind::LostAnswer
                | Kind::StepForwards
                | Kind::StepBackwards,
                _,
            ) => {}
        }
    }

    /// The processes that a freeze hits.
    fn pids(&self, target: Target, chance: usize) -> Vec<u32> {
        match target {
            Target::Node(node) => vec![self.nodes[node].app.pid()],
            Target::Machine(node) => {
                let app = &self.nodes[node].app;
                app.workers().into_iter().chain([app.pid()]).collect()
            }
            Target::Worker(node) => {
                some(&self.nodes[node].app.workers(), chance).into_iter().collect()
            }
            other => unreachable!("{other:?} is no process of a node"),
        }
    }

    fn way(&self, target: Target) -> &Proxy {
        match target {
            Target::HttpOf(node) => &self.nodes[node].http,
            Target::RedisOf(node) => &self.nodes[node].redis,
            Target::PostgresOf(node) => self.nodes[node].postgres.as_ref().unwrap(),
            other => unreachable!("{other:?} is no connection"),
        }
    }
}

/// One of them, if there is any.
fn some(pids: &[u32], chance: usize) -> Option<u32> {
    pids.get(chance % pids.len().max(1)).copied()
}

//! Playing a plan on the product, and healing it afterwards.

use std::time::Duration;

use stampede_testkit::{Proxy, Wrong};
use tokio::time::{Instant, sleep};

use super::{Place, Product, engine_url, port_of};
use crate::faults::ledger::Tally;
use crate::faults::plan::Fault;

/// How often it is looked whether a process has ended by itself.
const LOOK: Duration = Duration::from_millis(250);
/// How long the product may take to be ready when everything is healed.
const PATIENCE: Duration = Duration::from_secs(120);

impl Product {
    /// Plays the faults; `said` hears of each.
    pub(in crate::faults) async fn play(&mut self, faults: &[Fault], said: &Tally) {
        let began = Instant::now();
        let mut steps: Vec<(Duration, bool, &Fault)> = Vec::new();
        for fault in faults {
            steps.extend([(fault.begins, true, fault), (fault.begins + fault.lasts, false, fault)]);
        }
        steps.sort_by_key(|(at, begins, _)| (*at, *begins));
        for (at, begins, fault) in steps {
            while let Some(left) = at.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
                sleep(left.min(LOOK)).await;
                self.keep_up();
            }
            if begins {
                self.begin(fault);
                said.count(fault.to_string());
            } else {
                self.end(fault).await;
            }
        }
    }

    /// Ends what is left of all faults, and waits until every node is ready.
    pub(in crate::faults) async fn heal(&mut self) {
        for node in &self.nodes {
            [Some(&node.http), Some(&node.redis), node.postgres.as_ref()]
                .into_iter()
                .flatten()
                .for_each(Proxy::mend);
        }
        self.faults.change(|wrong| *wrong = Wrong::default());
        if let Place::OfItsOwn(disk) = &self.disk {
            disk.make_room();
        }
        let give_up = Instant::now() + PATIENCE;
        loop {
            self.keep_up();
            let mut reason = String::new();
            for node in &self.nodes {
                match node.app.stranger().try_get("/ready").await {
                    Ok(answer) if answer.status == 200 => {}
                    Ok(answer) => reason = answer.body.to_string(),
                    Err(error) => reason = error,
                }
            }
            if reason.is_empty() {
                return;
            }
            if Instant::now() > give_up {
                self.keep_logs(&std::env::temp_dir().join("stampede-faults"));
                panic!("not ready {PATIENCE:?} after the last fault: {reason}");
            }
            sleep(LOOK).await;
        }
    }

    /// Starts what has ended without being told to, as a service manager would.
    pub(in crate::faults) fn keep_up(&mut self) {
        for number in 0..self.nodes.len() {
            let node = &mut self.nodes[number];
            if !node.dead && node.app.has_ended() {
                // Workers that outlive a node for a moment write to the same log, after the place where it was cut.
                let log = node.app.log().replace('\0', "");
                let last = log.lines().rev().find(|line| !line.trim().is_empty());
                let reason = log.lines().rev().find(|line| line.starts_with("stampede: ")).or(last);
                let reason: String = reason.unwrap_or_default().chars().take(200).collect();
                self.surprises.count(format!("node ended by itself: {reason}"));
                self.start_again(number);
            }
        }
        self.follow_engine();
    }

    pub(super) fn start_again(&mut self, number: usize) {
        self.save_log(number, &self.nodes[number]);
        let node = &mut self.nodes[number];
        node.dead = false;
        node.app.launch_again();
    }

    /// The engine's port may change with a restart.
    pub(super) fn follow_engine(&self) {
        if self.redis.is_none() {
            let node = &self.nodes[0];
            if let Some(port) = port_of(&engine_url(&node.data)) {
                node.redis.lead_to(port);
            }
        }
    }
}

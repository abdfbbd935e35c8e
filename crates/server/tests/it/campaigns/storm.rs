//! A campaign is killed at random moments, paused and resumed: nobody gets a message twice, and no recipient is lost.
//!
//! | variable | number of | small | full |
//! |---|---|---|---|
//! | `STAMPEDE_STORM_RECIPIENTS` | recipients | 400 | 10,000 |
//! | `STAMPEDE_STORM_KILLS` | kills with `kill -9` | 4 | 20 |
//! | `STAMPEDE_STORM_PAUSES` | pauses | 2 | 5 |
//! | `STAMPEDE_STORM_SEED` | the plan: the same one again | random | |
//!
//! ```text
//!  plan (seed) ──▶ a worker, all workers, the server, everything is killed · pause, resume
//!  then: completed ──▶ the ledger is compared with what the provider got
//! ```

use std::time::Duration;

use fastrand::Rng;
use stampede_testkit::{App, Client, eventually, kill};
use tokio::time::sleep;

use super::recorder::Recorder;
use super::{HERE, large_campaign, number, organiser, size, verb};
use crate::{PATIENCE, start};

/// Messages in a second.
const RATE: usize = 100;
/// Worker processes, and the messages that each of them sends at a time.
const WORKERS: [(&str, &str); 2] = [("WORKER_COUNT", "2"), ("JOB_CONCURRENCY", "8")];
/// Messages that a killed process may leave behind, of which nobody knows whether they arrived.
const LEFT_BY_A_KILL: usize = 2 * 8;
/// How long the provider takes to answer: kills hit messages that have arrived and are not answered.
const LATENCY: Duration = Duration::from_millis(30);
/// A kill comes so much later than it is planned, at most.
const LATER: Duration = Duration::from_millis(300);
/// How long the campaign may take to end after the last kill: locks expire after 15 s; the reconciler looks every 30 s for
/// recipients that were left behind a minute ago.
const SETTLE: Duration = Duration::from_secs(240);

/// What happens to a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    KillWorker,
    KillServer,
    KillEverything,
    KillAllWorkers,
    PauseAndResume,
}

/// Kills of all kinds, and pauses, in a random order.
fn plan(kills: usize, pauses: usize, rng: &mut Rng) -> Vec<Step> {
    let kinds = [Step::KillWorker, Step::KillServer, Step::KillEverything, Step::KillAllWorkers];
    let kills = kinds.into_iter().cycle().take(kills);
    let mut plan: Vec<Step> =
        kills.chain(std::iter::repeat_n(Step::PauseAndResume, pauses)).collect();
    rng.shuffle(&mut plan);
    plan
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_kills_and_pauses_nobody_gets_a_message_twice_and_no_recipient_is_lost() {
    let recipients = size("STAMPEDE_STORM_RECIPIENTS", 400);
    let kills = size("STAMPEDE_STORM_KILLS", 4);
    let pauses = size("STAMPEDE_STORM_PAUSES", 2);
    let seed = size("STAMPEDE_STORM_SEED", fastrand::usize(..1_000_000));
    let mut rng = Rng::with_seed(seed as u64);
    let plan = plan(kills, pauses, &mut rng);
    println!("STAMPEDE_STORM_SEED={seed}: {plan:?}");

    let recorder = Recorder::start(LATENCY).await;
    let app = start(&[HERE, WORKERS[0], WORKERS[1]]).await;
    let ann = organiser(&app, "ann");
    recorder.account(&ann, "hook", RATE, Duration::from_secs(1)).await;
    let path = large_campaign(&ann, "hook", recipients).await;
    let mut storm = Storm { app, ann, path, recorder, rng };
    verb(&storm.ann, &storm.path, "start").await.expect(200);
    for (number, step) in plan.iter().enumerate() {
        // The last steps come while some are still to be sent to, though some get no message.
        storm.recorder.has(recipients * (number + 1) / (plan.len() + 2)).await;
        sleep(LATER.mul_f64(storm.rng.f64())).await;
        storm.play(*step).await;
    }
    let Storm { app, ann, path, recorder, .. } = storm;
    let ended = eventually(SETTLE, || async {
        let contract = ann.try_get(&path).await?.body;
        if contract["status"] == "completed" { Ok(contract) } else { Err(contract.to_string()) }
    })
    .await;
    let (sent, unknown) = recorder.assert_agrees(&ann, &path).await;
    println!("{sent} sent, {unknown} unknown, {} came", recorder.count());
    // The provider accepts every message.
    assert_eq!((number(&ended, "failed"), number(&ended, "skipped")), (0, 0), "{ended}");
    assert_eq!((sent + unknown) as usize, recipients);
    let most = kills * LEFT_BY_A_KILL;
    assert!(unknown as usize <= most, "{unknown} unknown after {kills} kills: {ended}");
    let (healthy, report) = app.command(&["doctor"]);
    assert!(healthy, "{report}");
}

/// A campaign and what is done to it.
struct Storm {
    app: App,
    ann: Client,
    path: String,
    recorder: Recorder,
    rng: Rng,
}

impl Storm {
    async fn play(&mut self, step: Step) {
        match step {
            Step::KillWorker => {
                let workers = self.workers().await;
                kill(workers[self.rng.usize(..workers.len())]);
            }
            Step::KillAllWorkers => self.workers().await.into_iter().for_each(kill),
            // Its workers live on for a moment, without the engine.
            Step::KillServer => {
                self.app.kill();
                self.app.start_again(&[]).await;
            }
            Step::KillEverything => {
                self.app.kill_everything();
                self.app.start_again(&[]).await;
            }
            Step::PauseAndResume => self.pause_and_resume().await,
        }
    }

    /// The worker processes, as soon as there are some.
    async fn workers(&self) -> Vec<u32> {
        eventually(PATIENCE, || async {
            let workers = self.app.workers();
            (!workers.is_empty()).then_some(workers)
        })
        .await
    }

    async fn pause_and_resume(&mut self) {
        let paused = verb(&self.ann, &self.path, "pause").await.expect(200);
        let come = self.recorder.count();
        sleep(LATER.mul_f64(self.rng.f64())).await;
        let late = self.recorder.count() - come;
        let in_flight = paused["inFlight"].as_u64().unwrap() as usize;
        assert!(late <= in_flight, "{late} came after the pause: {paused}");
        verb(&self.ann, &self.path, "resume").await.expect(200);
    }
}

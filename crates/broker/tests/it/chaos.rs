//! Many jobs while processes are killed and frozen and connections reset: every job has one end, and
//! none ends without its effect.
//!
//! Counted by what the processes wrote outside Redis (`fleet.rs`), effects as well as the ends that were
//! acknowledged to them, and by the events of the queue as they were read along. `make test` runs it with a tenth of the jobs; all of them:
//! `STAMPEDE_CHAOS_JOBS=100000 cargo nextest run --workspace -E 'test(chaos)' --no-capture`

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use redis::cmd;
use stampede_broker::{Backoff, JobSpec};
use stampede_testkit::Proxy;

use crate::fleet::{Fleet, Limit, Ship, connect_patiently, times};
use crate::stage::{Stage, job, raw};

const PROCESSES: usize = 5;
const SLOTS: usize = 16;
const LOCK: Duration = Duration::from_millis(1_500);
/// How many jobs, unless `STAMPEDE_CHAOS_JOBS` says it.
const JOBS: usize = 10_000;
/// How long the last jobs may take once everybody is left in peace.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a job is like, by its number.
fn spec(number: usize) -> JobSpec {
    let name = match number % 50 {
        7 => "flaky",
        13 => "broken",
        _ => "plain",
    };
    let backoff = Some(Backoff::Exponential(Duration::from_millis(50)));
    let priority = if number.is_multiple_of(10) { 5 } else { 0 };
    JobSpec { name: name.into(), priority, backoff, ..job(&format!("{name}-{number}")) }
}

/// How often something was done to the processes and their connections.
#[derive(Debug, Default)]
struct Trouble {
    killed: usize,
    frozen: usize,
    resets: usize,
    connections: usize,
}

/// Makes trouble until `ended`.
async fn make_trouble(fleet: &mut Fleet, proxy: &Proxy, ended: impl Fn() -> bool) -> Trouble {
    let mut trouble = Trouble::default();
    let mut frozen: Option<(usize, Instant)> = None;
    while !ended() {
        let pause = Duration::from_millis(fastrand::u64(100..500));
        tokio::time::sleep(pause).await;
        if let Some((index, until)) = frozen
            && Instant::now() >= until
        {
            fleet.processes[index].thaw();
            frozen = None;
        }
        let index = fastrand::usize(..PROCESSES);
        // Each kind once, then as chance has it: a fast machine leaves no time for many.
        let so_far = trouble.killed + trouble.frozen + trouble.resets;
        let kind = if so_far < 3 { so_far as u8 } else { fastrand::u8(..3) };
        match kind {
            0 => {
                if frozen.is_some_and(|(other, _)| other == index) {
                    frozen = None;
                }
                fleet.replace(index);
                trouble.killed += 1;
            }
            1 if frozen.is_none() => {
                // Shorter than its locks live, or longer.
                let how_long = LOCK.mul_f64(fastrand::f64() * 2.0);
                fleet.processes[index].freeze();
                frozen = Some((index, Instant::now() + how_long));
                trouble.frozen += 1;
            }
            _ => {
                let luck = fastrand::u64(..3);
                trouble.connections += proxy.reset(|number| number % 3 == luck);
                trouble.resets += 1;
            }
        }
    }
    if let Some((index, _)) = frozen {
        fleet.processes[index].thaw();
    }
    trouble
}

/// Reads the events of the queue along; the ends of every job. `ended` tells how many have one.
async fn watch(url: String, jobs: usize, ended: Arc<AtomicUsize>) -> HashMap<String, Vec<String>> {
    let mut redis = raw(&url).await;
    let mut ends: HashMap<String, Vec<String>> = HashMap::new();
    let mut next = "-".to_owned();
    let mut quiet_since = Instant::now();
    // Not before all have ended, and then a while longer: a second end would come late.
    while ends.len() < jobs || quiet_since.elapsed() < 4 * LOCK {
        let mut command = cmd("XRANGE");
        command.arg("bull:tickets:events").arg(&next).arg("+").arg("COUNT").arg(5_000);
        let entries: Vec<(String, Vec<String>)> = command.query_async(&mut redis).await.unwrap();
        if entries.is_empty() {
            assert!(quiet_since.elapsed() < PATIENCE, "{} of {jobs} have ended", ends.len());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        for (id, fields) in entries {
            let field = |name: &str| {
                fields.chunks_exact(2).find(|pair| pair[0] == name).map(|pair| pair[1].clone())
            };
            let event = field("event").unwrap();
            if event == "completed" || event == "failed" {
                ends.entry(field("jobId").unwrap()).or_default().push(event);
                quiet_since = Instant::now();
            }
            next = format!("({id}");
        }
        ended.store(ends.len(), Ordering::Relaxed);
    }
    ends
}

/// Adds all jobs over connections that break, each as often as it takes.
async fn add(url: String, jobs: usize) {
    let (_broker, queue) = connect_patiently(&url).await;
    let specs: Vec<JobSpec> = (0..jobs).map(spec).collect();
    for chunk in specs.chunks(250) {
        while let Err(error) = queue.enqueue(chunk).await {
            assert!(error.is_outage(), "{error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_job_has_one_end_and_its_effect_whatever_happens_to_its_workers() {
    let jobs = std::env::var("STAMPEDE_CHAOS_JOBS").map_or(JOBS, |jobs| jobs.parse().unwrap());
    let stage = Stage::start().await;
    // All events are kept until they were read.
    stage.ask::<()>("HSET @meta opts.maxLenEvents 10000000").await;
    let proxy = Proxy::start(stage.redis.port()).await;
    let ship = Ship {
        url: proxy.url(),
        slots: SLOTS,
        lock: LOCK,
        limit: Limit::No,
        work: Duration::from_millis(20),
    };
    let mut fleet = Fleet::start(PROCESSES, ship);
    let began = Instant::now();
    let ended = Arc::new(AtomicUsize::new(0));
    let watching = tokio::spawn(watch(stage.redis.url(), jobs, ended.clone()));
    let adding = tokio::spawn(add(proxy.url(), jobs));
    // The last ones end in peace.
    let nearly_all = || watching.is_finished() || ended.load(Ordering::Relaxed) > jobs * 95 / 100;
    let trouble = make_trouble(&mut fleet, &proxy, nearly_all).await;
    adding.await.unwrap();
    let ends = watching.await.unwrap();
    let took = began.elapsed();

    stage
        .until("nothing is left", |counts| {
            counts.waiting + counts.prioritized + counts.active + counts.delayed == 0
        })
        .await;
    let ledger = fleet.ledger();
    let (began, effects) = (times(&ledger, "began"), times(&ledger, "effect"));
    let (stumbled, refused) = (times(&ledger, "stumbled"), times(&ledger, "refused"));
    let (completed, failed) = (times(&ledger, "completed"), times(&ledger, "failed"));
    let mut runs: BTreeMap<usize, usize> = BTreeMap::new();
    for number in 0..jobs {
        let JobSpec { id, name, .. } = spec(number);
        let wanted = if name == "broken" { "failed" } else { "completed" };
        assert_eq!(ends.get(&id).map(Vec::as_slice), Some([wanted.to_owned()].as_slice()), "{id}");
        let effect = if name == "broken" { &refused } else { &effects };
        assert!(effect.contains_key(&id), "{id} has ended without its effect");
        assert!(name != "flaky" || stumbled.contains_key(&id), "{id}");
        let told = [&completed, &failed].map(|ends| ends.get(&id).copied().unwrap_or(0));
        let most = if name == "broken" { [0, 1] } else { [1, 0] };
        assert!(told[0] <= most[0] && told[1] <= most[1], "{id} was told of {told:?} ends");
        *runs.entry(began[&id]).or_default() += 1;
    }
    assert_eq!(ends.len(), jobs);
    // An end that its process was killed before it could write down is in no ledger.
    let untold = jobs - completed.len() - failed.len();
    assert!(untold <= trouble.killed * 2 * SLOTS, "{untold} ends were told to nobody: {trouble:?}");
    let letters = stage.queue.dead_letters().count().await.unwrap();
    assert_eq!(letters, (0..jobs).filter(|number| spec(*number).name == "broken").count());
    assert!(trouble.killed > 0 && trouble.frozen > 0 && trouble.connections > 0, "{trouble:?}");
    println!(
        "{jobs} jobs in {took:.1?}: {trouble:?}; jobs by number of runs: {runs:?}; {untold} ends were told to nobody"
    );
}

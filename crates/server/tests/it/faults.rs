//! The fault campaign: the whole product under random faults, with a ledger that is compared at the end.
//!
//! ```text
//!  plan (seed) ──▶ product: kill -9, SIGSTOP, resets, silence, full/slow/failing disk, clock steps
//!  accounts ─────▶ work: orders, edits, voids, deletions, jobs, scans; each acknowledgement is written down
//!  then: heal ──▶ settle ──▶ audit: lost, doubled, wrong ──▶ report
//! ```
//!
//! `make test` plays half a minute on two combinations. A long one: `scripts/faults --minutes 30`.

mod caller;
mod jobs;
mod ledger;
mod messages;
mod observed;
mod options;
mod orders;
mod plan;
mod product;
mod redeems;

use std::fmt::Write;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use self::ledger::{Account, Audit, Site, Tally, accounts};
use self::options::{BrokerKind, Combination, Options, StoreKind};
use self::product::Product;

/// How long the faults of a short campaign are played.
const SHORT: Duration = Duration::from_secs(25);
/// How long the work may take to end when everything is healed: locks expire, the reconciler comes every 30 s and takes messages
/// that nobody has touched for 60 s, and delayed jobs wait for a clock that was set back.
const SETTLE: Duration = Duration::from_secs(240);
/// Findings that are shown of each kind.
const SHOWN: usize = 12;

/// What a campaign has found.
struct Report {
    text: String,
    clean: bool,
}

async fn campaign(options: &Options) -> Report {
    let mut product = Product::start(options).await;
    let site = product.site();
    let (faults, played, stop) = (
        plan::plan(options.combination, options.length, options.seed),
        Tally::default(),
        CancellationToken::new(),
    );
    let accounts = accounts(options.seed);
    let work = accounts
        .iter()
        .map(|account| tokio::spawn(account.clone().work(site.clone(), stop.clone())));
    let mut work = futures::future::join_all(work.collect::<Vec<_>>());

    product.play(&faults, &played).await;
    product.heal().await;
    stop.cancel();
    let began = Instant::now();
    let mut audit = Audit::default();
    if tokio::time::timeout(SETTLE, &mut work)
        .await
        .map(|ended| ended.into_iter().any(|task| task.is_err()))
        != Ok(false)
    {
        audit.wrong.push("a client panicked or has requests that nobody answers".to_owned());
    }
    // The port of an engine may have changed.
    let site = Site { direct_broker: product.site().direct_broker, ..site };
    if let Err(reason) = settled(&mut product, &accounts, &site).await {
        audit.wrong.push(format!("not settled {SETTLE:?} after the last fault: {reason}"));
    }
    let settled_in = began.elapsed();
    for account in &accounts {
        audit.add(account.audit(&site).await);
    }
    audit.wrong.extend(product.doctor().err().map(|report| format!("doctor: {report}")));
    let clean = audit.is_clean();
    let mut text = report(options, &played, &audit, &site, settled_in);
    let surprises = product.surprises.line();
    if !surprises.is_empty() {
        writeln!(text, "not planned: {surprises}").unwrap();
    }
    if !clean || options.keep_logs {
        let folder = std::env::temp_dir().join(format!("stampede-faults-{}", options.seed));
        product.keep_logs(&folder);
        writeln!(text, "logs and books: {}", folder.display()).unwrap();
    }
    Report { text, clean }
}

/// Waits until no account has anything under way.
async fn settled(
    product: &mut Product,
    accounts: &[std::sync::Arc<dyn Account>],
    site: &Site,
) -> Result<(), String> {
    let give_up = Instant::now() + SETTLE;
    loop {
        let mut reason = None;
        for account in accounts {
            reason = reason.or(account.settled(site).await.err());
        }
        match reason {
            None => return Ok(()),
            Some(reason) if Instant::now() > give_up => return Err(reason),
            Some(_) => sleep(Duration::from_millis(500)).await,
        }
        product.keep_up();
    }
}

fn report(
    options: &Options,
    played: &Tally,
    audit: &Audit,
    site: &Site,
    settled_in: Duration,
) -> String {
    let Options { combination, length, seed, fsync, .. } = options;
    let list = |items: &[(&str, usize)]| -> String {
        let parts: Vec<String> =
            items.iter().map(|(name, count)| format!("{name} {count}")).collect();
        parts.join(" · ")
    };
    let mut text = format!(
        "Fault campaign on {combination}: {:.1} minutes, seed {seed}, fsync {fsync}\n",
        length.as_secs_f64() / 60.0
    );
    writeln!(text, "faults: {}", played.line()).unwrap();
    writeln!(text, "acknowledged: {}", list(&audit.acknowledged)).unwrap();
    writeln!(text, "answers: {}", site.answers.line()).unwrap();
    writeln!(text, "also: {}", list(&audit.notes)).unwrap();
    writeln!(text, "settled {:.0} s after the last fault", settled_in.as_secs_f64()).unwrap();
    for (name, findings) in
        [("lost", &audit.lost), ("doubled", &audit.doubled), ("wrong", &audit.wrong)]
    {
        writeln!(text, "{name}: {}", findings.len()).unwrap();
        findings.iter().take(SHOWN).for_each(|finding| writeln!(text, "  {finding}").unwrap());
    }
    let [store, broker] = combination.words();
    writeln!(
        text,
        "the same plan again: scripts/faults --minutes {:.2} --store {store} --broker {broker} --seed {seed} --fsync {fsync}",
        length.as_secs_f64() / 60.0
    )
    .unwrap();
    text
}

/// Plays a campaign, prints its report and fails unless the ledger is clean.
#[allow(clippy::print_stdout)] // A person reads it: scripts/faults.
async fn play(combination: Combination) {
    let report = campaign(&Options::read(combination, SHORT)).await;
    println!("{}", report.text);
    assert!(report.clean, "{}", report.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_or_doubled_on_sqlite_and_the_engine() {
    play(Combination { store: StoreKind::Sqlite, broker: BrokerKind::Engine }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_or_doubled_on_postgres_and_redis_with_two_nodes() {
    play(Combination { store: StoreKind::Postgres, broker: BrokerKind::Redis }).await;
}

/// The length and the servers that `scripts/faults` chose.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "scripts/faults plays it, for as long as it is told"]
async fn nothing_acknowledged_is_lost_or_doubled_on_the_chosen_servers() {
    play(Options::combination()).await;
}

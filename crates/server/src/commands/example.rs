//! `stampede example orders`: seed 002's order pipeline, to watch and to copy from.
//!
//! Four queues, one consumer each, on an embedded engine in a temporary folder:
//!
//! ```text
//!  orders            payments           inventory             notifications
//!  validate-order ─▶ charge-payment ─▶ reserve-inventory ─▶ notify-warehouse ─▶ send-confirmation-email
//! ```
//!
//! A flow's children are done before their parent, so the tree is built from the end: the mail is the
//! root and the validation the leaf. (Seed 002 has it the other way round, and would thank customers
//! before it has charged them.)
//!
//! The outside world (`world.rs`) misbehaves on purpose ([`INTRODUCTION`]). The declined cards are replayed with
//! others. The report at the end says what became of it, from books that the world keeps itself.

mod steps;
mod world;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use stampede_broker::{
    Broker, Config, Consumer, ConsumerConfig, DeadLetter, EventKind, Flow, JobSpec, Letters, Queue,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::steps::Steps;
use self::world::World;
use crate::cli::{ExampleOrders, FsyncArg};
use crate::local_engine::LocalEngine;

/// The queues of seed 002, and how many jobs each works on at a time.
const QUEUES: [(&str, usize); 4] =
    [("orders", 4), ("payments", 8), ("inventory", 4), ("notifications", 8)];
const PATIENCE: Duration = Duration::from_secs(120);

/// What people read before it begins.
const INTRODUCTION: &str = "\
A shop's orders, each a flow of five jobs over four queues, on an engine in a temporary folder:

  orders         validate-order
  payments       charge-payment           behind a circuit breaker; paid once, however often it is asked for
  inventory      reserve-inventory
  notifications  notify-warehouse         at most 100 in any second
  notifications  send-confirmation-email  given up after 500 ms and tried again

Each step begins when the one before it is done. The world misbehaves on purpose: orders are empty, cards
are declined, the bank stumbles, loses its answers and is down for a while, the warehouse's driver panics,
the mail server hangs.
";

pub(crate) async fn orders(options: ExampleOrders) -> Result<()> {
    // The report counts the panics of the driver; their traces are in the jobs' records.
    std::panic::set_hook(Box::new(|_| {}));
    let folder = tempfile::Builder::new().prefix("stampede-example-").tempdir()?;
    let stop = CancellationToken::new();
    let engine = LocalEngine::start(folder.path(), FsyncArg::Everysec, stop.clone()).await?;
    let result = tokio::select! {
        result = run(&options, engine.url(), &stop) => result,
        _ = tokio::signal::ctrl_c() => Err(anyhow!("interrupted")),
    };
    engine.stop().await?;
    result
}

async fn run(options: &ExampleOrders, url: &str, stop: &CancellationToken) -> Result<()> {
    let broker = Broker::connect(&Config::new(url)).await?;
    let world = Arc::new(World::new(options.orders));
    say(options, INTRODUCTION);
    let mut consumers = JoinSet::new();
    for (name, slots) in QUEUES {
        let queue = broker.queue(name).await?;
        let config = ConsumerConfig::new(format!("example {name}"), slots);
        let consumer = Consumer::new(config, queue, Steps::new(world.clone()));
        let mut events = consumer.handle().events();
        let books = world.clone();
        tokio::spawn(async move {
            while let Ok(event) = events.recv().await {
                if let EventKind::Retried(reason) = event.kind {
                    books.note_retry(&reason);
                }
            }
        });
        consumers.spawn(consumer.run(stop.clone()));
    }
    say(options, &format!("Adding {} orders.", options.orders));
    let started = Instant::now();
    for number in 1..=options.orders {
        broker.add_flow(&flow(number)).await?;
    }
    watch(options, &broker, &world).await?;
    let took = started.elapsed();
    let replayed = replay_declined(options, &broker).await?;
    watch(options, &broker, &world).await?;
    let letters = dead_letters(&broker).await?;
    stop.cancel();
    consumers.join_all().await;
    report(options, &world, &letters, replayed, took)
}

/// What an operator does who has talked to those whose cards were declined.
async fn replay_declined(options: &ExampleOrders, broker: &Broker) -> Result<usize> {
    let payments = broker.queue("payments").await?;
    let letters = payments.dead_letters();
    let mut replayed = 0;
    let declined = letters_of(&payments).await?;
    let declined = declined.iter().filter(|letter| letter.reason.contains("declined"));
    for letter in declined {
        let mut data: Value = serde_json::from_str(letter.payload.get())?;
        data["card"] = json!("another");
        let this = Letters::These(vec![letter.job_id.clone()]);
        replayed += letters.replay(&this, Some(&data)).await?.count;
    }
    say(
        options,
        &format!(
            "{replayed} cards were declined. Their dead letters are replayed with another card, and the steps \
             after them follow."
        ),
    );
    Ok(replayed)
}

fn say(options: &ExampleOrders, text: &str) {
    if !options.json {
        println!("{text}");
    }
}

/// One order: the last step is the root, for children are done first.
fn flow(number: u32) -> Flow {
    let step = |queue: &str, name: &'static str| {
        let data = json!({ "v": 1, "order": number });
        // The same order added twice is one order.
        Flow::new(queue, JobSpec { id: format!("{name}-{number}"), ..JobSpec::new(name, data) })
    };
    let validate = step("orders", "validate-order");
    let charge = step("payments", "charge-payment").after(validate);
    let reserve = step("inventory", "reserve-inventory").after(charge);
    let warehouse = step("notifications", "notify-warehouse").after(reserve);
    step("notifications", "send-confirmation-email").after(warehouse)
}

/// Shows a progress bar until every order is confirmed or has failed.
async fn watch(options: &ExampleOrders, broker: &Broker, world: &World) -> Result<()> {
    let bar =
        if options.json { ProgressBar::hidden() } else { ProgressBar::new(options.orders.into()) };
    bar.set_style(ProgressStyle::with_template("{bar:40.cyan/blue} {pos}/{len} orders")?);
    let last: Queue = broker.queue("notifications").await?;
    let give_up = Instant::now() + PATIENCE;
    loop {
        let confirmed = world.confirmed() as u64;
        // An order whose last step has failed is over; one that failed earlier takes the last step along.
        let letters = letters_of(&last).await?;
        let failed = letters.iter().filter(|letter| letter.name == "send-confirmation-email");
        let over = confirmed + failed.count() as u64;
        bar.set_position(over);
        if over >= u64::from(options.orders) {
            bar.finish();
            return Ok(());
        }
        if Instant::now() > give_up {
            bar.abandon();
            bail!(
                "{} orders did not come to an end within {PATIENCE:?}",
                u64::from(options.orders) - over
            );
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn dead_letters(broker: &Broker) -> Result<Vec<DeadLetter>> {
    let mut letters = Vec::new();
    for (name, _) in QUEUES {
        letters.extend(letters_of(&broker.queue(name).await?).await?);
    }
    Ok(letters)
}

async fn letters_of(queue: &Queue) -> Result<Vec<DeadLetter>> {
    let dead = queue.dead_letters();
    let (mut letters, mut from) = (Vec::new(), Some(0));
    while let Some(at) = from {
        let page = dead.list(at, 1000).await?;
        letters.extend(page.letters);
        from = page.next;
    }
    Ok(letters)
}

fn report(
    options: &ExampleOrders,
    world: &World,
    letters: &[DeadLetter],
    replayed: usize,
    took: Duration,
) -> Result<()> {
    // What failed by itself, not because an earlier step had.
    let causes: Vec<&DeadLetter> =
        letters.iter().filter(|letter| !letter.reason.starts_with("child ")).collect();
    let report = world.report();
    let confirmed = world.confirmed();
    if options.json {
        let dead: Vec<_> = causes
            .iter()
            .map(|letter| json!({ "job": letter.job_id, "queue": letter.queue, "reason": letter.reason }))
            .collect();
        let seconds = took.as_secs_f64();
        println!(
            "{}",
            json!({
                "orders": options.orders, "confirmed": confirmed, "failed": causes.len(),
                "replayed": replayed, "seconds": seconds, "world": report, "deadLetters": dead,
            })
        );
    } else {
        println!(
            "\n{confirmed} orders confirmed, {replayed} of them with another card; {} failed; in {took:.1?}",
            causes.len()
        );
        println!("\nWhat the outside world saw, by its own books:");
        for (what, count) in &report {
            println!("  {count:>6}  {what}");
        }
        println!(
            "\nDead letters that are left: {} (ten of them at most are shown; with a server of your own: \
             stampede queues dead-letters orders)",
            causes.len()
        );
        for letter in causes.iter().take(10) {
            println!("  {:<24} {}", letter.job_id, letter.reason);
        }
        println!(
            "\nThe steps after a failed one were given up with it: {} more.\n\
             The code to copy from is crates/server/src/commands/example/steps.rs, the guide docs/queues.md.",
            letters.len() - causes.len()
        );
    }
    for wrong in [world::CHARGED_TWICE, world::TOO_EARLY, world::TOO_MANY] {
        let count = report.get(wrong).copied().unwrap_or(0);
        if count > 0 {
            bail!("{count} {wrong}");
        }
    }
    let over = confirmed + causes.len();
    (over == options.orders as usize)
        .then_some(())
        .context(format!("{over} of {} orders came to an end", options.orders))
}

//! An order pipeline, to watch and to copy from.
//!
//! Each order is a flow of five jobs over four queues, with one consumer per queue:
//!
//! ```text
//!  orders            payments           inventory             notifications
//!  validate-order ─▶ charge-payment ─▶ reserve-inventory ─▶ notify-warehouse ─▶ send-confirmation-email
//! ```
//!
//! In a flow, children are done before their parent. So the tree is built from the end: the mail is the
//! root and the validation is the leaf.
//!
//! The outside world (`world.rs`) misbehaves on purpose ([`INTRODUCTION`]). Payments with declined cards
//! become dead letters, and are replayed with other cards. The report at the end comes from books that the
//! outside world keeps itself.
//!
//! Run it with `cargo run -p stampede-example-orders -- --redis redis://127.0.0.1:6379`, or with
//! `stampede example orders`, which starts an engine in a temporary folder.

mod steps;
mod world;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use stampede_broker::{
    Broker, Config, Consumer, ConsumerConfig, DeadLetter, EventKind, Flow, JobSpec, Letters, Queue,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::steps::Steps;
use self::world::World;

/// The queues, and how many jobs of each run at a time.
const QUEUES: [(&str, usize); 4] =
    [("orders", 4), ("payments", 8), ("inventory", 4), ("notifications", 8)];
/// All orders end within this time, or something is wrong.
const PATIENCE: Duration = Duration::from_secs(120);

/// Printed before the orders are added.
const INTRODUCTION: &str = "\
A shop's orders, each a flow of five jobs over four queues:

  orders         validate-order
  payments       charge-payment           behind a circuit breaker; paid once, however often it is asked for
  inventory      reserve-inventory
  notifications  notify-warehouse         at most 100 in any second
  notifications  send-confirmation-email  given up after 500 ms and tried again

Each step begins when the one before it is done. The world misbehaves on purpose: orders are empty, cards
are declined, the bank stumbles, loses its answers and is down for a while, the warehouse's driver panics,
the mail server hangs.
";

/// Options of the example.
#[derive(Debug, Args)]
pub struct Options {
    /// How many orders
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    orders: u32,
    /// Print one JSON object instead of a report
    #[arg(long)]
    json: bool,
}

/// Runs the pipeline on the Redis of `config`, and prints the report. The queues must be empty. Ctrl-C
/// ends it early.
pub async fn run(options: &Options, config: &Config) -> Result<()> {
    // One step panics on purpose. The report counts the panics; their traces are in the jobs' records.
    std::panic::set_hook(Box::new(|_| {}));
    let stop = CancellationToken::new();
    let result = tokio::select! {
        result = process_orders(options, config, &stop) => result,
        _ = tokio::signal::ctrl_c() => Err(anyhow!("interrupted")),
    };
    stop.cancel();
    result
}

async fn process_orders(
    options: &Options,
    config: &Config,
    stop: &CancellationToken,
) -> Result<()> {
    let broker = Broker::connect(config).await?;
    must_be_empty(&broker).await?;
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

/// Orders have numbers from 1, and an order that is added twice is one order. So the jobs of an earlier
/// run would be taken for those of this one.
async fn must_be_empty(broker: &Broker) -> Result<()> {
    for (name, _) in QUEUES {
        let counts = broker.queue(name).await?.counts().await?;
        let jobs = [
            counts.waiting,
            counts.prioritized,
            counts.active,
            counts.delayed,
            counts.waiting_children,
            counts.completed,
            counts.failed,
        ];
        if jobs.iter().any(|jobs| *jobs > 0) {
            bail!(
                "the queue {name:?} holds jobs already; give a --prefix that was not used before"
            );
        }
    }
    Ok(())
}

/// Replays the payments whose cards were declined, with another card. An operator would do this after
/// talking to the customers.
async fn replay_declined(options: &Options, broker: &Broker) -> Result<usize> {
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

fn say(options: &Options, text: &str) {
    if !options.json {
        println!("{text}");
    }
}

/// The flow of one order. The last step is the root, because children are done first.
fn flow(number: u32) -> Flow {
    let step = |queue: &str, name: &'static str| {
        let data = json!({ "v": 1, "order": number });
        // The id makes adding idempotent: an order that is added twice is one order.
        Flow::new(queue, JobSpec { id: format!("{name}-{number}"), ..JobSpec::new(name, data) })
    };
    let validate = step("orders", "validate-order");
    let charge = step("payments", "charge-payment").after(validate);
    let reserve = step("inventory", "reserve-inventory").after(charge);
    let warehouse = step("notifications", "notify-warehouse").after(reserve);
    step("notifications", "send-confirmation-email").after(warehouse)
}

/// Shows a progress bar until every order is confirmed or has failed.
async fn watch(options: &Options, broker: &Broker, world: &World) -> Result<()> {
    let bar =
        if options.json { ProgressBar::hidden() } else { ProgressBar::new(options.orders.into()) };
    bar.set_style(ProgressStyle::with_template("{bar:40.cyan/blue} {pos}/{len} orders")?);
    let last: Queue = broker.queue("notifications").await?;
    let give_up = Instant::now() + PATIENCE;
    loop {
        let confirmed = world.confirmed() as u64;
        // An order is over when its last step is done or failed; a failed step fails all steps after it.
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
    options: &Options,
    world: &World,
    letters: &[DeadLetter],
    replayed: usize,
    took: Duration,
) -> Result<()> {
    // Letters of steps that failed themselves, not because an earlier step did.
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
             The code to copy from is examples/orders/src/steps.rs, the guide docs/queues.md.",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_of_an_order_waits_for_the_one_before_it() {
        let mut step = &flow(7);
        let mut names = vec![step.job.name.clone()];
        while let [before] = &step.children[..] {
            names.push(before.job.name.clone());
            step = before;
        }
        names.reverse();
        let wanted = [
            "validate-order",
            "charge-payment",
            "reserve-inventory",
            "notify-warehouse",
            "send-confirmation-email",
        ];
        assert_eq!(names, wanted);
    }
}

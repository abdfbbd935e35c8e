//! `stampede bench render`: the CPU time of one ticket, for every way to make it.
//!
//! Stamping, stamping with compression and Typst run in this process. wkhtmltopdf (with the flags of the
//! Node system before Stampede), a warm Chromium, WeasyPrint and ReportLab run beside it where they are
//! installed. All take turns in every round, so that other load on the machine affects all of them.
//! Figures are medians of the rounds. CPU time is compared: it hardly depends on other load.
//!
//! | file | holds |
//! |---|---|
//! | `ours.rs` | stamping, and Typst for every ticket |
//! | `outside.rs` | programs that make PDFs of HTML, and Python libraries |
//! | `chromium.rs` | a Chromium that stays up, driven over its debugging port |

mod chromium;
mod ours;
mod outside;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Map, Value, json};

use self::chromium::Chromium;
use self::ours::{Ours, Way};
use self::outside::{Python, Wkhtmltopdf};
use crate::figures::rounded;

/// Options of `bench render`.
#[derive(Debug, Args)]
pub struct BenchRender {
    /// Tickets to stamp in each round
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    tickets: u32,
    /// Tickets for Typst in each round
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    typst: u32,
    /// Tickets for each of the other programs in each round; 0 leaves them out
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    outside: u32,
    /// Rounds, of which the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Print one JSON object instead of a report
    #[arg(long)]
    json: bool,
}

/// CPU seconds and bytes for one ticket.
#[derive(Debug, Clone, Copy)]
struct Cost {
    seconds: f64,
    bytes: f64,
}

/// One way to make tickets.
enum Tool {
    Ours(Way),
    Wkhtmltopdf(Wkhtmltopdf),
    Chromium(Box<Chromium>),
    Python(Python),
}

pub(crate) async fn run(options: BenchRender) -> Result<()> {
    let (tools, missing) = tools(&options).await;
    let mut ours = Ours::new()?;
    let mut found: Vec<(&'static str, Vec<Cost>)> =
        tools.iter().map(|(name, _)| (*name, Vec::new())).collect();
    let mut tools: Vec<Tool> = tools.into_iter().map(|(_, tool)| tool).collect();
    for round in 0..options.rounds {
        if !options.json {
            eprintln!("round {} of {}", round + 1, options.rounds);
        }
        for turn in 0..tools.len() {
            // Another one begins in every round.
            let index = (turn + round as usize) % tools.len();
            let cost = match &mut tools[index] {
                Tool::Ours(way) => ours.measure(*way, &options)?,
                Tool::Wkhtmltopdf(tool) => tool.measure(options.outside)?,
                Tool::Chromium(tool) => tool.measure(options.outside).await?,
                Tool::Python(tool) => tool.measure(options.outside)?,
            };
            found[index].1.push(cost);
        }
    }
    let report = Report {
        medians: found.into_iter().map(|(name, costs)| (name, median(&costs))).collect(),
        missing,
    };
    if options.json {
        println!("{}", report.json())
    } else {
        report.print()
    }
    Ok(())
}

/// The ways that are installed, and those that are not, each with the reason.
async fn tools(options: &BenchRender) -> (Vec<(&'static str, Tool)>, Vec<(&'static str, String)>) {
    let mut tools = vec![
        ("stamped", Tool::Ours(Way::Stamped)),
        ("stamped, deflated", Tool::Ours(Way::Deflated)),
        ("Typst", Tool::Ours(Way::Typst)),
    ];
    let mut missing = Vec::new();
    let mut add = |name, tool: Result<Tool>| match tool {
        Ok(tool) => tools.push((name, tool)),
        Err(error) => missing.push((name, format!("{error:#}"))),
    };
    if options.outside == 0 {
        return (tools, missing);
    }
    add("wkhtmltopdf", Wkhtmltopdf::find().map(Tool::Wkhtmltopdf));
    add("Chromium", Chromium::start().await.map(|tool| Tool::Chromium(Box::new(tool))));
    add("WeasyPrint", Python::find("weasyprint").map(Tool::Python));
    add("ReportLab", Python::find("reportlab").map(Tool::Python));
    (tools, missing)
}

struct Report {
    medians: Vec<(&'static str, Cost)>,
    missing: Vec<(&'static str, String)>,
}

impl Report {
    fn cost(&self, name: &str) -> Option<Cost> {
        self.medians.iter().find(|(tool, _)| *tool == name).map(|(_, cost)| *cost)
    }

    /// The CPU time of a tool, divided by that of stamping.
    fn ratio(&self, name: &str) -> Option<f64> {
        Some(self.cost(name)?.seconds / self.cost("stamped")?.seconds)
    }

    fn json(&self) -> Value {
        let stamped = self.cost("stamped").unwrap_or(Cost { seconds: f64::NAN, bytes: f64::NAN });
        let key = |name: &str| name.to_lowercase().replace(", ", "_");
        let cpu: Map<String, Value> = self
            .medians
            .iter()
            .map(|(name, cost)| (key(name), json!(rounded(cost.seconds * 1e6))))
            .collect();
        let bytes: Map<String, Value> = self
            .medians
            .iter()
            .map(|(name, cost)| (key(name), json!(cost.bytes.round())))
            .collect();
        json!({
            "stamp_per_s_core": (1.0 / stamped.seconds).round(),
            "stamp_bytes": stamped.bytes.round(),
            "vs_typst": self.ratio("Typst").map(f64::round),
            "vs_wkhtmltopdf": self.ratio("wkhtmltopdf").map(f64::round),
            "cpu_us_per_ticket": cpu,
            "bytes_per_ticket": bytes,
            "not_found": self.missing.iter().map(|(name, _)| key(name)).collect::<Vec<_>>(),
        })
    }

    fn print(&self) {
        println!("{:<20} {:>12} {:>12} {:>10}", "", "CPU µs", "tickets/s", "bytes");
        for (name, cost) in &self.medians {
            println!(
                "{name:<20} {:>12.1} {:>12.0} {:>10.0}   {:>7.0} ×",
                cost.seconds * 1e6,
                1.0 / cost.seconds,
                cost.bytes,
                self.ratio(name).unwrap_or(f64::NAN),
            );
        }
        println!(
            "\nCPU time for one ticket; tickets a second for each core; × is CPU against stamping."
        );
        for (name, why) in &self.missing {
            println!("not found: {name} ({why})");
        }
    }
}

fn median(costs: &[Cost]) -> Cost {
    let of = |pick: fn(&Cost) -> f64| {
        let mut values: Vec<f64> = costs.iter().map(pick).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    Cost { seconds: of(|cost| cost.seconds), bytes: of(|cost| cost.bytes) }
}

/// CPU seconds of this thread, to the nanosecond.
pub(crate) fn thread_cpu() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    match text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()) {
        Some(ns) => Ok(ns / 1e9),
        None => bail!("/proc/thread-self/schedstat says {text:?}"),
    }
}

/// CPU seconds of all threads of this process, and of its children that have ended.
fn process_cpu() -> Result<(f64, f64)> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    // The name in parentheses may hold spaces; times are 14 to 17, in ticks of a hundredth.
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: Vec<f64> =
        rest.split_whitespace().skip(11).take(4).filter_map(|t| t.parse().ok()).collect();
    let [user, system, children_user, children_system] = ticks[..] else {
        bail!("/proc/self/stat says {text:?}")
    };
    let tick = rustix::param::clock_ticks_per_second() as f64;
    Ok(((user + system) / tick, (children_user + children_system) / tick))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_the_report_are_ratios_of_cpu() {
        let cost = |seconds, bytes| Cost { seconds, bytes };
        let report = Report {
            medians: vec![
                ("stamped", median(&[cost(3e-5, 1.0), cost(2e-5, 20_000.0), cost(1e-5, 30_000.0)])),
                ("Typst", cost(2e-3, 1.0)),
            ],
            missing: vec![("wkhtmltopdf", "gone".into())],
        };
        let json = report.json();
        assert_eq!(json["stamp_per_s_core"], 50_000.0);
        assert_eq!(json["vs_typst"], 100.0);
        assert_eq!(json["vs_wkhtmltopdf"], Value::Null);
        assert_eq!(json["not_found"][0], "wkhtmltopdf");
    }

    #[test]
    fn cpu_times_can_be_read_and_grow() {
        let before = thread_cpu().unwrap();
        let sum: u64 = (0..20_000_000_u64).map(|n| n ^ (n << 3)).fold(0, u64::wrapping_add);
        assert!(thread_cpu().unwrap() > before, "{sum}");
        assert!(process_cpu().unwrap().0 >= 0.0);
    }
}

//! The figures of all rounds: medians, ratios, and the table.

use serde_json::{Map, Value, json};

use super::Round;
use crate::figures::{median, rounded};

/// Medians of both sides, and medians of the ratios.
pub(super) fn summary(rounds: &[Round]) -> Value {
    let names: Vec<&String> =
        rounds.first().map(|round| round.ours.keys().collect()).unwrap_or_default();
    let figure = |pick: &dyn Fn(&Round, &str) -> f64| -> Map<String, Value> {
        names
            .iter()
            .map(|name| {
                let middle = median(rounds.iter().map(|round| pick(round, name)));
                ((*name).clone(), json!(rounded(middle)))
            })
            .collect()
    };
    json!({
        "ours": figure(&|round, name| round.ours[name]),
        "node": figure(&|round, name| round.node.get(name).copied().unwrap_or(f64::NAN)),
        "ratios": figure(&|round, name| round.ours[name] / round.node.get(name).copied().unwrap_or(f64::NAN)),
    })
}

/// Prints the table.
pub(super) fn print(report: &Value) {
    for aof in ["on", "off"] {
        let part = &report["aof"][aof];
        println!("\nRedis with AOF {aof}");
        println!("  {:<22} {:>12} {:>12} {:>8}", "", "ours", "Node", "ratio");
        for (name, ours) in part["ours"].as_object().into_iter().flatten() {
            let of = |side: &str| part[side][name].as_f64().unwrap_or(f64::NAN);
            let digits = if name.ends_with("ms") { 2 } else { 0 };
            println!(
                "  {:<22} {:>12.digits$} {:>12.digits$} {:>8.2}",
                name,
                ours.as_f64().unwrap_or(f64::NAN),
                of("node"),
                of("ratios")
            );
        }
    }
    println!("\nadd, process, life: jobs a second (more is better); add to start: milliseconds at");
    println!("{} jobs a second (less is better). Ratios are ours to Node's.", report["rate"]);
}

//! Compiles a shipped design or a file and says what became of it:
//! `cargo run --example design -- a4 [slow.pdf]`.

#![allow(clippy::print_stdout, reason = "a tool for the terminal")]

use std::time::Instant;

use stampede_render::compiled::Typeset;
use stampede_template::{Bundle, EventData, compile, shipped, typeset};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().ok_or("which design?")?;
    let bundle = match shipped().iter().find(|design| design.name == name) {
        Some(design) => design.bundle.clone(),
        None => Bundle::of_source(&std::fs::read_to_string(&name)?).map_err(|e| format!("{e:?}"))?,
    };
    let event = EventData::sample();
    for _ in 0..4 {
        let start = Instant::now();
        match compile(&bundle, &event) {
            Ok(published) => println!(
                "{:.1} ms: {} bytes, pages {:?}, fields {:?}, slow because {:?}, warnings {:?}",
                start.elapsed().as_secs_f64() * 1e3,
                published.blob.len(),
                published.pages,
                published.fields,
                published.slow_because,
                published.warnings,
            ),
            Err(mistakes) => {
                for mistake in mistakes {
                    println!("{mistake}");
                }
                return Err("it cannot be compiled".into());
            }
        }
    }
    if let Some(path) = arguments.next() {
        let mut files: Vec<_> = bundle.files().clone().into_iter().collect();
        files.push(("event.json".into(), serde_json::to_vec(&event)?));
        let template = Typeset { reason: String::new(), files };
        let pdf = typeset(&template, &event.sample_ticket()).map_err(|e| format!("{e:?}"))?;
        std::fs::write(path, pdf)?;
    }
    Ok(())
}

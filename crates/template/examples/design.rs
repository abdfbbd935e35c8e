//! Compiles a shipped design or a folder and makes a ticket with it, stamped and typeset:
//! `cargo run --example design -- a4 out [name]` writes `out/a4-stamped.pdf` and `out/a4-typeset.pdf`.

#![allow(clippy::print_stdout, reason = "a tool for the terminal")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use stampede_render::compiled::{Compiled, Typeset};
use stampede_render::{Prepared, Values, blob, stamp};
use stampede_template::{Bundle, EventData, compile, shipped, typeset};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, out, rest @ ..] = &arguments[..] else { return Err("design, folder".into()) };
    let bundle = match shipped().iter().find(|design| design.name == name) {
        Some(design) => design.bundle.clone(),
        None => read(Path::new(name))?,
    };
    let event = EventData::sample();
    let mut ticket = event.sample_ticket();
    if let Some(guest) = rest.first() {
        ticket.name.clone_from(guest);
    }
    let name = Path::new(name).file_name().unwrap_or_default().display();
    for _ in 0..3 {
        let start = Instant::now();
        let published = compile(&bundle, &event).map_err(|e| format!("{e:#?}"))?;
        println!(
            "{:.1} ms: blob of {} bytes, pages {:?}, fields {:?}, slow because {:?}, warnings {:?}",
            start.elapsed().as_secs_f64() * 1e3,
            published.blob.len(),
            published.pages,
            published.fields,
            published.slow_because,
            published.warnings,
        );
        if let Compiled::Stamped(stamped) = blob::decode(&published.blob)? {
            println!("shared part: {} bytes", stamped.base.bytes.len());
            let fields = ticket.fields();
            let fields: Vec<(&str, &str)> = fields.iter().map(|(n, v)| (*n, v.as_ref())).collect();
            let pdf = stamp(
                &Arc::new(Prepared::new(*stamped)?),
                &Values { id: &ticket.id, fields: &fields },
            )?;
            println!("stamped: {} bytes", pdf.len());
            std::fs::write(format!("{out}/{name}-stamped.pdf"), pdf)?;
        }
    }
    let mut files: Vec<_> = bundle.files().clone().into_iter().collect();
    files.push(("event.json".into(), serde_json::to_vec(&event)?));
    let template = Typeset { reason: String::new(), files };
    let pdf = typeset(&template, &ticket).map_err(|e| format!("{e:#?}"))?;
    std::fs::write(format!("{out}/{name}-typeset.pdf"), pdf)?;
    Ok(())
}

/// The files of a folder, or one file as a template.
fn read(path: &Path) -> Result<Bundle, Box<dyn std::error::Error>> {
    if path.is_file() {
        return Ok(
            Bundle::of_source(&std::fs::read_to_string(path)?).map_err(|e| format!("{e:#?}"))?
        );
    }
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.insert(name, std::fs::read(&path)?);
    }
    Ok(Bundle::new(files).map_err(|e| format!("{e:#?}"))?)
}

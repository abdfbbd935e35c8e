//! `stampede engine check` and `repair`: a journal that no engine has open.

use std::path::Path;

use anyhow::{Result, bail};
use indicatif::{HumanBytes, HumanCount};
use stampede_engine::journal::{self, Contents};

pub(super) fn check(dir: &Path) -> Result<()> {
    exists(dir)?;
    let contents = journal::check(dir)?;
    println!("The journal in {}:", dir.display());
    print(&contents);
    match &contents.damage {
        None => {
            println!("It is whole. Nothing was changed");
            Ok(())
        }
        Some(damage) => bail!("{damage}"),
    }
}

pub(super) fn repair(dir: &Path) -> Result<()> {
    exists(dir)?;
    let repaired = journal::repair(dir)?;
    if repaired.damage.is_empty() {
        println!("The journal in {} is whole; nothing was changed", dir.display());
        print(&repaired.kept);
        return Ok(());
    }
    println!("The journal in {} was repaired:", dir.display());
    for damage in &repaired.damage {
        println!("  damaged     {} at byte {}: {}", damage.file, damage.offset, damage.what);
    }
    println!(
        "  moved aside {} with {} readable records",
        HumanBytes(repaired.lost_bytes),
        HumanCount(repaired.lost_records)
    );
    for file in &repaired.set_aside {
        println!("              {}", dir.join(file).display());
    }
    println!("Kept, and used from the next start on:");
    print(&repaired.kept);
    println!("What was moved aside is not used again; delete it when nobody needs it");
    Ok(())
}

/// Refuses a folder without a journal, so that a mistyped one is not taken for an empty journal.
fn exists(dir: &Path) -> Result<()> {
    if !dir.join("manifest").exists()
        && !std::fs::read_dir(dir).is_ok_and(|mut files| files.next().is_some())
    {
        bail!("there is no journal in {}. Give its folder with --dir", dir.display());
    }
    Ok(())
}

fn print(contents: &Contents) {
    println!(
        "  snapshot    {} items, {}",
        HumanCount(contents.items),
        HumanBytes(contents.snapshot_bytes)
    );
    println!(
        "  log         {} records, {}; the last is number {}",
        HumanCount(contents.records),
        HumanBytes(contents.log_bytes),
        contents.last
    );
    if let Some(torn) = &contents.torn {
        println!(
            "  torn tail   {} at byte {} of {}, left by a crash; the next start cuts it",
            HumanBytes(torn.bytes),
            torn.offset,
            torn.file
        );
        if torn.records > 0 {
            println!("              {} whole records behind it go with it", torn.records);
        }
    }
}

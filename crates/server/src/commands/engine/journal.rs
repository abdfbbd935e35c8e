//! `stampede engine check` and `repair`: a journal that no engine has open.
//!
//! Exit codes: 0 whole, or repaired without a loss; 3 damaged (`check`), or repaired with a loss that was named
//! (`repair`); 4 no state of any moment can be restored, nothing was changed; 1 any other error.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use indicatif::{HumanBytes, HumanCount};
use stampede_engine::{
    Contents, Damage, JournalError, Missing, Outcome, RepairRule, Repaired, check_journal,
    plan_repair, repair_journal,
};

use crate::cli::Repair;
use crate::commands::ExitWith;

/// The exit code of damage that a repair can undo in part or in whole, and of a repair with a loss.
const LOSS: u8 = 3;
/// The exit code of a refused repair.
const REFUSED: u8 = 4;
/// The number of names of missing keys that are printed.
const SHOWN_NAMES: usize = 20;

pub(super) fn check(dir: &Path) -> Result<()> {
    exists(dir)?;
    let contents = check_journal(dir)?;
    println!("The journal in {}{}:", dir.display(), up_to_damage(&contents));
    print_contents(&contents);
    if contents.damage.is_none() {
        println!("It is whole. Nothing was changed");
        return Ok(());
    }
    let planned = plan_repair(dir, RepairRule::Moment).map_err(refused)?;
    print_damage(&planned.damage);
    println!("The command \"stampede engine repair --dir {}\" would give:", dir.display());
    print_result(&planned, dir);
    bail!(ExitWith {
        code: LOSS,
        message: "the journal is damaged. Nothing was changed".to_owned()
    })
}

pub(super) fn repair(default_dir: PathBuf, options: Repair) -> Result<()> {
    let dir = options.journal.dir.unwrap_or(default_dir);
    exists(&dir)?;
    let rule = if options.salvage { RepairRule::Salvage } else { RepairRule::Moment };
    let repaired = repair_journal(&dir, rule).map_err(refused)?;
    if repaired.outcome == Outcome::Whole {
        println!("The journal in {} is whole; nothing was changed", dir.display());
        print_contents(&repaired.kept);
        return Ok(());
    }
    println!("The journal in {} was damaged:", dir.display());
    print_damage(&repaired.damage);
    println!("It was repaired:");
    print_result(&repaired, &dir);
    println!("Files that were set aside are not used again; delete them when nobody needs them");
    let message = match repaired.outcome {
        Outcome::Whole | Outcome::Restored => return Ok(()),
        Outcome::Moment => {
            "the journal is the state of an earlier moment; what came after it is lost"
        }
        Outcome::Salvaged => "the journal is the state of no moment: keys are missing, see above",
    };
    bail!(ExitWith { code: LOSS, message: message.to_owned() })
}

/// The error of a refused repair has an exit code of its own, and tells what a salvage could keep.
fn refused(error: JournalError) -> anyhow::Error {
    let message = error.to_string();
    let JournalError::Unrepairable(refusal) = error else { return error.into() };
    print_damage(&refusal.damage);
    if let Some(missing) = &refusal.missing {
        println!("A repair with --salvage would give:");
        println!("  kept        {} keys of the snapshot", HumanCount(refusal.readable));
        print_missing(missing);
    }
    ExitWith { code: REFUSED, message }.into()
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

fn up_to_damage(contents: &Contents) -> &'static str {
    if contents.damage.is_some() { ", up to its damage" } else { "" }
}

fn print_damage(damage: &[Damage]) {
    for damage in damage {
        println!("  damaged     {} at byte {}: {}", damage.file, damage.offset, damage.what);
    }
}

/// Prints what a repair keeps, loses and sets aside.
fn print_result(result: &Repaired, dir: &Path) {
    match result.outcome {
        Outcome::Whole | Outcome::Restored => println!("  kept        everything:"),
        Outcome::Moment => println!("  kept        the state of one moment:"),
        Outcome::Salvaged => println!("  kept        what is readable, the state of no moment:"),
    }
    print_contents(&result.kept);
    let (kept, seen) = (result.kept.last, result.last_seen);
    if seen > kept {
        let which = match seen - kept {
            1 => format!("record {seen}"),
            count => format!("records {} to {seen}, {} in all", kept + 1, HumanCount(count)),
        };
        let readable = HumanCount(result.readable_records);
        println!("  lost        {which}; {readable} can still be read in the files set aside");
    } else if result.outcome == Outcome::Moment {
        println!(
            "  lost        the damaged record, number {}, and what may have followed it",
            kept + 1
        );
    }
    if let Some(missing) = &result.missing {
        print_missing(missing);
    }
    println!("  set aside   {}", HumanBytes(result.set_aside_bytes));
    for file in &result.set_aside {
        println!("              {}", dir.join(file).display());
    }
}

fn print_missing(missing: &Missing) {
    match missing.keys {
        Some(keys) => println!("  lost        {} keys of the snapshot", HumanCount(keys)),
        None => {
            println!(
                "  lost        an unknown number of keys: the snapshot does not tell how many it had"
            )
        }
    }
    for gap in &missing.gaps {
        println!("              {} at byte {} are damaged", HumanBytes(gap.bytes), gap.offset);
    }
    let (shown, more) = missing.names.split_at(missing.names.len().min(SHOWN_NAMES));
    if !shown.is_empty() {
        println!("              as far as their names can be read: {}", shown.join(", "));
    }
    if !more.is_empty() {
        println!("              and {} more", more.len());
    }
}

fn print_contents(contents: &Contents) {
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

//! Makes the finished Lua scripts: reads those of the pinned `bullmq-official` crate, rewrites some, and writes
//! the results to `OUT_DIR`, where `src/lib.rs` includes them.
//!
//! ```text
//!   bullmq-official/src/commands/*.lua ─┐
//!                                       ├─▶ rewrite.rs ──▶ OUT_DIR/<name>.lua ──▶ constants of lib.rs
//!   lua/queue/*.lua ────────────────────┘
//! ```
//!
//! BullMQ's scripts are not copied into this repository: raising the version of the crate changes the producer's
//! and our consumer's side together. A text that `rewrite.rs` expects and does not find fails the build.

#[path = "src/rewrite.rs"]
mod rewrite;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, error::Error, fs};

/// The version of `bullmq-official` that the workspace's manifest pins.
const BULLMQ: &str = "1.4.4";

/// BullMQ's scripts that are used as they are. Adding one? Give it a constant in `src/lib.rs`.
const UNCHANGED: [&str; 8] = [
    "addLog-2",
    "moveJobFromActiveToWait-9",
    "moveStalledJobsToWait-9",
    "moveToFinished-14",
    "moveToWaitingChildren-7",
    "removeUnprocessedChildren-2",
    "updateJobScheduler-12",
    "updateProgress-3",
];

/// BullMQ's scripts that promote delayed jobs, which are repaired first.
const PROMOTING: [&str; 4] =
    ["moveToActive-11", "moveToDelayed-11", "moveToFinished-14", "retryJob-11"];

/// Functions of `moveToFinished` that a call for many jobs needs once, and their wrappers in `many.lua`.
const WHEN_FINISHING: [(&str, &str); 7] = [
    ("getOrSetMaxEvents", "once"),
    ("trimEvents", "once"),
    ("promoteDelayedJobs", "repairedOnce"),
    ("addBaseMarkerIfNeeded", "marked"),
    ("getQueueMetadata", "unlessCounted"),
    ("removeJobsByMaxAge", "afterAll"),
    ("removeJobsByMaxCount", "afterAll"),
];

/// Functions of the scripts that add jobs which a call for many jobs needs once: adding changes neither settings
/// nor the number of active jobs.
const WHEN_ADDING: [(&str, &str); 3] = [
    ("getOrSetMaxEvents", "once"),
    ("isQueuePausedOrMaxed", "once"),
    ("addBaseMarkerIfNeeded", "marked"),
];

/// As [`WHEN_ADDING`], for delayed jobs: each sets the marker itself, because each may be the next one due.
const WHEN_DELAYING: [(&str, &str); 1] = [("getOrSetMaxEvents", "once")];

/// Functions of `removeJob` that are wrapped by those of `removing.lua`.
const WHEN_REMOVING: [(&str, &str); 2] =
    [("removeParentDependencyKey", "failingParent"), ("removeJobFromAnyState", "knownState")];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/rewrite.rs");
    println!("cargo:rerun-if-changed=lua");
    // The lock file tells which version is pinned, and thereby where its scripts are.
    println!("cargo:rerun-if-changed=../../Cargo.lock");
    let commands = bullmq_folder()?.join("src/commands");
    // For the test that compares them with npm's.
    println!("cargo:rustc-env=BULLMQ_SCRIPTS={}", commands.display());
    let lua = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("lua/queue");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    for (name, text) in finished(&commands, &lua)? {
        fs::write(out.join(format!("{name}.lua")), text)?;
    }
    Ok(())
}

/// The finished scripts that are made of BullMQ's, by name.
fn finished(commands: &Path, lua: &Path) -> Result<Vec<(String, String)>, String> {
    let bullmq = |script: &str| read(&commands.join(format!("{script}.lua")));
    let ours = |file: &str| read(&lua.join(format!("{file}.lua")));
    let (repair, many) = (ours("repair")?, ours("many")?);
    let functions = [repair.as_str(), &many];
    let mut all = Vec::new();
    for script in UNCHANGED {
        all.push((format!("{}-unchanged", name_of(script)), bullmq(script)?));
    }
    for script in PROMOTING {
        let text = rewrite::repair_delayed(&bullmq(script)?, &repair);
        all.push((name_of(script).to_owned(), text.map_err(of(script))?));
    }
    let mut add = |name: &str, script: &str, wrapped: &[_], needed: &[_], calls: &str| {
        let text = rewrite::as_function(&bullmq(script)?, wrapped, needed, &functions, calls);
        all.push((name.to_owned(), text.map_err(of(script))?));
        Ok::<(), String>(())
    };
    add("finish_many", "moveToFinished-14", &WHEN_FINISHING, &[], &ours("finish_many")?)?;
    let add_many = ours("add_many")?;
    add("add_many_standard", "addStandardJob-9", &WHEN_ADDING, &[], &add_many)?;
    add("add_many_prioritized", "addPrioritizedJob-9", &WHEN_ADDING, &[], &add_many)?;
    add("add_many_delayed", "addDelayedJob-6", &WHEN_DELAYING, &[], &add_many)?;
    let letters = ours("forget_letter")?;
    let replay = letters.clone() + &ours("replay")?;
    let needed = ["moveChildBackToParentDependencies"];
    add("replay", "reprocessJob-9", &[], &needed, &replay)?;
    let replay_anew = letters.clone() + &ours("replay_anew")?;
    add("replay_anew_standard", "addStandardJob-9", &[], &[], &replay_anew)?;
    add("replay_anew_prioritized", "addPrioritizedJob-9", &[], &[], &replay_anew)?;
    let removing = [repair.as_str(), &many, &ours("removing")?];
    for name in ["remove", "remove_slice"] {
        let script = "removeJob-2";
        let text = bullmq(script)?;
        let text = rewrite::as_function(&text, &WHEN_REMOVING, &[], &removing, &ours(name)?);
        all.push((name.to_owned(), text.map_err(of(script))?));
    }
    all.push(("extend_locks".into(), ours("extend_locks")? + &bullmq("extendLocks-1")?));
    all.push(("repair_one".into(), repair.clone() + &ours("repair_one")?));
    all.push(("repair_stalled".into(), repair.clone() + &ours("repair_stalled")?));
    all.push(("purge_letter".into(), letters + &ours("purge_letter")?));
    Ok(all)
}

/// An error about one of BullMQ's scripts, with the remedy.
fn of(script: &str) -> impl Fn(String) -> String {
    let script = script.to_owned();
    move |reason| {
        format!(
            "{script}.lua of bullmq-official {BULLMQ} is not as crates/scripts expects it: {reason}. If the version was \
             raised, read the new script and adapt crates/scripts/build.rs and src/rewrite.rs."
        )
    }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// `moveToActive-11` → `moveToActive`: the number counts its keys.
fn name_of(script: &str) -> &str {
    script.rsplit_once('-').map_or(script, |(name, _)| name)
}

/// Asks Cargo where it unpacked the pinned crate.
///
/// The question is about a package of its own that depends on `bullmq-official` and nothing else: a question
/// about this workspace would need every crate of the lock file, also those that only tests or other platforms
/// use, and a first `cargo build` does not download these. Cargo answers from its registry folder, from
/// vendored crates, or from wherever else its configuration says. The network is asked only when that fails:
/// whoever builds this crate alone, on a machine that has built nothing yet, does not have the crate.
fn bullmq_folder() -> Result<PathBuf, Box<dyn Error>> {
    let own = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let probe = Path::new(&env::var("OUT_DIR")?).join("probe");
    fs::create_dir_all(&probe)?;
    // An empty library: its source is never compiled.
    fs::write(
        probe.join("Cargo.toml"),
        format!(
            "[package]\nname = \"probe\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
             [lib]\npath = \"Cargo.toml\"\n\n[dependencies]\nbullmq-official = \"={BULLMQ}\"\n\n[workspace]\n"
        ),
    )?;
    // Names the versions of everything that bullmq-official needs, so that Cargo need not choose them.
    let lock = own.join("../../Cargo.lock");
    if lock.exists() {
        check_version(&fs::read_to_string(&lock)?)?;
    }
    let ask = |network: &[&str]| -> Result<_, Box<dyn Error>> {
        if lock.exists() {
            fs::copy(&lock, probe.join("Cargo.lock"))?;
        }
        let output = Command::new(env::var("CARGO")?)
            // Cargo's configuration (vendored crates, other registries) is looked for from here upwards.
            .current_dir(&own)
            .args(["metadata", "--format-version", "1"])
            .args(network)
            .args(["--filter-platform", &env::var("TARGET")?])
            .arg("--manifest-path")
            .arg(probe.join("Cargo.toml"))
            .output()?;
        Ok(output)
    };
    let mut output = ask(&["--offline"])?;
    let mut reasons = String::from_utf8_lossy(&output.stderr).into_owned();
    // This crate alone, in an empty registry: nothing has downloaded bullmq-official yet.
    if !output.status.success() && env::var_os("CARGO_NET_OFFLINE").is_none() {
        output = ask(&[])?;
        reasons.push_str(&String::from_utf8_lossy(&output.stderr));
    }
    if !output.status.success() {
        let told = format!("cargo does not say where bullmq-official {BULLMQ} is: {reasons}");
        return Err(told.into());
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|package| package["name"] == "bullmq-official")
        .and_then(|package| package["manifest_path"].as_str())
        .and_then(|manifest| Path::new(manifest).parent())
        .map(Path::to_path_buf)
        .ok_or_else(|| "bullmq-official is not among the dependencies".into())
}

/// Refuses to build with the scripts of another version than the one that the broker is compiled with.
fn check_version(lock: &str) -> Result<(), String> {
    let locked = lock
        .split_once("name = \"bullmq-official\"\nversion = \"")
        .and_then(|(_, rest)| rest.split('"').next());
    match locked {
        Some(locked) if locked != BULLMQ => Err(format!(
            "Cargo.lock has bullmq-official {locked}, and crates/scripts/build.rs says {BULLMQ}; make them the same"
        )),
        _ => Ok(()),
    }
}

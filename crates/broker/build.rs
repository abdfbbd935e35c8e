//! Embeds the Lua scripts of the pinned `bullmq-official` crate.
//!
//! The scripts are not copied into this repository: they are read from the dependency's own folder,
//! so that raising its version changes the producer's and our consumer's side together.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, error::Error, fs};

/// The version of `bullmq-official` that the workspace's manifest pins.
const BULLMQ: &str = "1.4.4";

/// The scripts we run. Adding one? Also give it a function in `src/scripts/`.
const SCRIPTS: [&str; 7] = [
    "addLog-2",
    "moveJobFromActiveToWait-9",
    "moveStalledJobsToWait-9",
    "moveToWaitingChildren-7",
    "removeUnprocessedChildren-2",
    "updateJobScheduler-12",
    "updateProgress-3",
];

/// Those that promote delayed jobs, and mend them first (`src/scripts/mend.rs`).
const CAREFUL: [&str; 4] =
    ["moveToActive-11", "moveToDelayed-11", "moveToFinished-14", "retryJob-11"];

/// Those that are made part of other scripts only (`src/scripts/many.rs`, `holding.rs`, `remove.rs`, `replay.rs`).
const PARTS: [&str; 6] = [
    "addDelayedJob-6",
    "addPrioritizedJob-9",
    "addStandardJob-9",
    "extendLocks-1",
    "removeJob-2",
    "reprocessJob-9",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    // Which version is pinned, and thereby where its scripts are.
    println!("cargo:rerun-if-changed=../../Cargo.lock");
    let commands = bullmq_folder()?.join("src/commands");
    // For the test that compares them with npm's.
    println!("cargo:rustc-env=BULLMQ_SCRIPTS={}", commands.display());
    let mut table = String::new();
    for file in SCRIPTS.iter().chain(&CAREFUL).chain(&PARTS) {
        let path = commands.join(format!("{file}.lua"));
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let (name, _keys) = file.rsplit_once('-').ok_or("script names end in their key count")?;
        let constant = constant_name(name);
        table.push_str(&format!("const {constant}_TEXT: &str = {text:?};\n"));
        let made = if CAREFUL.contains(file) { "mend::careful" } else { "redis::Script::new" };
        if !PARTS.contains(file) {
            table.push_str(&format!(
                "static {constant}: Script = Script::new(|| {made}({constant}_TEXT));\n"
            ));
        }
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("scripts.rs"), table)?;
    Ok(())
}

/// Asks Cargo where it unpacked the pinned crate, without the network.
///
/// The question is about a package of its own that depends on `bullmq-official` and nothing else: a question
/// about this workspace would need every crate of the lock file, also those that only tests or other platforms
/// use, and a first `cargo build` does not download these. Cargo answers from its registry folder, from
/// vendored crates, or from wherever else its configuration says.
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
        fs::copy(lock, probe.join("Cargo.lock"))?;
    }
    let output = Command::new(env::var("CARGO")?)
        // Cargo's configuration (vendored crates, other registries) is looked for from here upwards.
        .current_dir(&own)
        .args(["metadata", "--format-version", "1", "--offline"])
        .args(["--filter-platform", &env::var("TARGET")?])
        .arg("--manifest-path")
        .arg(probe.join("Cargo.toml"))
        .output()?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        return Err(
            format!("cargo does not say where bullmq-official {BULLMQ} is: {reason}").into()
        );
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

/// `moveToActive` → `MOVE_TO_ACTIVE`.
fn constant_name(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_uppercase());
    }
    out
}

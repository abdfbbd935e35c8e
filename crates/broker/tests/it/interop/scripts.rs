//! The Lua scripts that we run are those of npm's `bullmq`.
//!
//! Ours come from the pinned `bullmq-official` (`crates/scripts/build.rs`), theirs from the package that `interop/run`
//! installs. Raising either version may make them differ: then look at how, and list it here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use tokio::process::Command;

use super::peer::packages;

/// Says all scripts as JSON; npm's package keeps them as JavaScript.
const TELL: &str = "
    const { readdirSync } = await import('node:fs');
    const folder = process.cwd() + '/node_modules/bullmq/dist/esm/scripts/';
    const scripts = {};
    for (const file of readdirSync(folder).filter(name => /-\\d+\\.js$/.test(name))) {
      scripts[file.slice(0, -3)] = Object.values(await import(folder + file))[0];
    }
    console.log(JSON.stringify(scripts));
";

#[derive(Deserialize)]
struct Script {
    content: String,
    keys: usize,
}

/// A script that is not the same in both, and why that does not matter.
struct Difference {
    script: &'static str,
    why: &'static str,
    /// How many lines only the crate's has, and how many only npm's.
    lines: (usize, usize),
}

const RESCHEDULE: &str =
    "npm's knows the option `reschedule` of deduplication, which the crate cannot send";
const RELAY: &str = "Relay, which Stampede does not use; the same set, written as (now or now + 1";

const DIFFERENCES: [Difference; 6] = [
    Difference { script: "addDelayedJob-6", why: RESCHEDULE, lines: (2, 9) },
    Difference { script: "addPrioritizedJob-9", why: RESCHEDULE, lines: (2, 35) },
    Difference { script: "addStandardJob-9", why: RESCHEDULE, lines: (2, 33) },
    Difference {
        script: "getCounts-1",
        why: "npm's can leave out jobs that are delayed until after some time, if asked to",
        lines: (2, 7),
    },
    Difference { script: "relayGet-1", why: RELAY, lines: (5, 5) },
    Difference { script: "relayGetNamespaces-1", why: RELAY, lines: (1, 1) },
];

/// Lines without comments at their ends, blank ones left out.
fn lines(script: &str) -> BTreeSet<&str> {
    let code = script.lines().map(|line| line.split("--").next().unwrap_or_default().trim());
    code.filter(|line| !line.is_empty()).collect()
}

fn the_crates() -> BTreeMap<String, String> {
    let folder = std::fs::read_dir(stampede_scripts::BULLMQ_SCRIPTS).unwrap();
    let files = folder.map(|file| file.unwrap().path());
    let named = |path: &Path| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    files.map(|path| named(&path)).collect()
}

#[tokio::test]
async fn our_scripts_are_those_of_npms_bullmq() {
    let mut node = Command::new("node");
    node.args(["--input-type=module", "-e", TELL]).current_dir(packages("packages").await);
    let told = node.output().await.expect("node: apt-get install nodejs");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let theirs: BTreeMap<String, Script> = serde_json::from_slice(&told.stdout).unwrap();
    let ours = the_crates();
    assert!(ours.keys().eq(theirs.keys()), "{:?} and {:?}", ours.keys(), theirs.keys());
    let mut differ = Vec::new();
    for (name, ours) in &ours {
        let theirs = &theirs[name];
        assert!(name.ends_with(&format!("-{}", theirs.keys)), "{name} has {} keys", theirs.keys);
        if *ours == theirs.content {
            continue;
        }
        differ.push(name.as_str());
        let known = DIFFERENCES.iter().find(|known| known.script == name);
        let known = known.unwrap_or_else(|| panic!("{name} is not that of npm's bullmq any more"));
        let (ours, theirs) = (lines(ours), lines(&theirs.content));
        let found = (ours.difference(&theirs).count(), theirs.difference(&ours).count());
        assert_eq!(found, known.lines, "{name}, of which was known: {}", known.why);
    }
    assert_eq!(differ, DIFFERENCES.map(|known| known.script), "a difference is gone");
}

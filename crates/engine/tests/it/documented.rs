//! `docs/engine.md` lists every command of the table, once.

use std::collections::BTreeMap;

use stampede_engine::testing::commands;

#[test]
fn the_document_lists_every_command_and_no_other() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/engine.md");
    let text = std::fs::read_to_string(path).unwrap();
    let section = text.split("## Commands").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| ") && line.contains('`'));
    let mut listed: BTreeMap<String, usize> = BTreeMap::new();
    // Every second part of a row is between backticks.
    for name in rows.flat_map(|row| row.split('`').skip(1).step_by(2)) {
        *listed.entry(name.to_lowercase()).or_default() += 1;
    }
    let twice: Vec<_> = listed.iter().filter(|(_, count)| **count > 1).collect();
    assert!(twice.is_empty(), "listed more than once: {twice:?}");
    let known: Vec<&str> = commands().iter().map(|row| row.name).collect();
    let missing: Vec<_> = known.iter().filter(|name| !listed.contains_key(**name)).collect();
    let gone: Vec<_> = listed.keys().filter(|name| !known.contains(&name.as_str())).collect();
    assert!(missing.is_empty() && gone.is_empty(), "missing: {missing:?}, unknown: {gone:?}");
}

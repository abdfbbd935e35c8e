//! Dependencies between our crates point down only; this compares the manifests with the table in
//! ARCHITECTURE.md.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().parent().unwrap()
}

/// Crate → layer, from the table: `| 1 | `broker` | … |`; layer `dev` ships with nothing.
fn layers() -> BTreeMap<String, Option<u32>> {
    let text = std::fs::read_to_string(workspace().join("ARCHITECTURE.md")).unwrap();
    let rows = text.lines().filter_map(|line| {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        let (layer, name) = (cells.next()?, cells.next()?);
        let name = name.strip_prefix('`')?.strip_suffix('`')?;
        if layer == "dev" {
            Some((name.to_owned(), None))
        } else {
            Some((name.to_owned(), Some(layer.parse().ok()?)))
        }
    });
    rows.collect()
}

/// The folder of a crate: `example-orders` is `examples/orders`, all others are in `crates`.
fn folder(name: &str) -> PathBuf {
    match name.strip_prefix("example-") {
        Some(example) => workspace().join("examples").join(example),
        None => workspace().join("crates").join(name),
    }
}

fn manifest(name: &str) -> toml::Table {
    std::fs::read_to_string(folder(name).join("Cargo.toml")).unwrap().parse().unwrap()
}

/// The names of the folders in `crates` or `examples`.
fn folders_in(parent: &str) -> Vec<String> {
    let folders = std::fs::read_dir(workspace().join(parent)).unwrap();
    folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Our own crates among the dependencies in one section of a manifest.
fn own_dependencies(manifest: &toml::Table, section: &str) -> Vec<String> {
    let table = manifest.get(section).and_then(|section| section.as_table());
    let names = table.into_iter().flat_map(|table| table.keys());
    names.filter_map(|name| name.strip_prefix("stampede-").map(str::to_owned)).collect()
}

#[test]
fn every_crate_stands_in_the_table_and_every_row_has_a_crate() {
    let mut folders = folders_in("crates");
    folders.extend(folders_in("examples").iter().map(|name| format!("example-{name}")));
    folders.sort();
    assert_eq!(folders, layers().into_keys().collect::<Vec<_>>());
}

#[test]
fn dependencies_point_down_only() {
    let layers = layers();
    for (name, layer) in &layers {
        for dependency in own_dependencies(&manifest(name), "dependencies") {
            let below = layers
                .get(&dependency)
                .unwrap_or_else(|| panic!("{dependency} is not in the table"));
            match (layer, below) {
                (_, None) => panic!("{name} ships {dependency}, which is only for tests"),
                (Some(upper), Some(lower)) => {
                    assert!(lower < upper, "{name} ({upper}) → {dependency} ({lower})")
                }
                (None, Some(_)) => {}
            }
        }
    }
}

#[test]
fn only_the_broker_names_redis_and_bullmq() {
    for name in layers().into_keys().filter(|name| name != "broker") {
        let manifest = manifest(&name);
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let table = manifest.get(section).and_then(|section| section.as_table());
            for dependency in table.into_iter().flat_map(|table| table.keys()) {
                assert!(
                    !["redis", "bullmq-official"].contains(&dependency.as_str()),
                    "{name} → {dependency}"
                );
            }
        }
    }
}

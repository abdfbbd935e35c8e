//! Embeds all migration files in the crate, their text and not their path: clones share what was compiled.
//!
//! `sqlx::migrate!` would do it too, but its macro compiles both database drivers, SQLite's C code and TLS a second
//! time for the compiler's own use: two minutes of a first build.
#![allow(clippy::print_stdout)]

use std::path::{Path, PathBuf};
use std::{env, error::Error, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=migrations");
    let migrations = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("migrations");
    let mut table = String::new();
    for (constant, folder) in [("SQLITE", "sqlite"), ("POSTGRES", "postgres")] {
        table.push_str(&format!("const {constant}: &[Embedded] = &[\n"));
        let mut files: Vec<PathBuf> = fs::read_dir(migrations.join(folder))?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        files.sort();
        for file in files {
            table.push_str(&row(&file)?);
        }
        table.push_str("];\n");
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("migrations.rs"), table)?;
    Ok(())
}

/// One row of the table: `0002_ticket_keys.sql` has version 2 and the description "ticket keys".
fn row(file: &Path) -> Result<String, Box<dyn Error>> {
    let name = file.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let (version, description) = name
        .split_once('_')
        .filter(|_| file.extension().is_some_and(|extension| extension == "sql"))
        .ok_or_else(|| format!("{}: migrations are called 0001_what.sql", file.display()))?;
    let version: i64 = version.parse().map_err(|e| format!("{}: {e}", file.display()))?;
    let description = description.replace('_', " ");
    let sql = fs::read_to_string(file)?;
    Ok(format!("    ({version}, {description:?}, {sql:?}),\n"))
}

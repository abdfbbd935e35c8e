//! The migrations of both databases, embedded at build time (see `build.rs`).

use std::borrow::Cow;
use std::sync::LazyLock;

use sqlx::SqlStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};

/// Version, description and text of a migration.
type Embedded = (i64, &'static str, &'static str);

include!(concat!(env!("OUT_DIR"), "/migrations.rs"));

/// Brings a SQLite database up to date.
pub(crate) static SQLITE_MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| migrator(SQLITE));

/// Brings a PostgreSQL database up to date.
pub(crate) static POSTGRES_MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| migrator(POSTGRES));

fn migrator(migrations: &[Embedded]) -> Migrator {
    let migrations = migrations.iter().map(|(version, description, sql)| {
        let (description, sql) = (Cow::Borrowed(*description), SqlStr::from_static(sql));
        Migration::new(*version, description, MigrationType::Simple, sql, false)
    });
    Migrator::with_migrations(migrations.collect())
}

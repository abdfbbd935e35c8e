//! Orders and tickets without HTTP: SQLite in a temporary folder, a real redis-server, real PDFs.
#![allow(clippy::unwrap_used)]

mod announce;
mod changes;
mod compiler;
mod download;
mod generate;
mod own_templates;
mod place;
mod reconcile;
mod stage;

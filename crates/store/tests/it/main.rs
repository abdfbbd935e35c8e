//! Tests of the store.
//!
//! - `suite/`: the conformance suite. Every test in it runs on every backend.
//! - `backends.rs`: the list of backends and how an empty database of each is started.
//! - `sql/`: tests of SQL alone: migrations, durability, old files, silent servers.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[macro_use]
mod backends;
mod sql;
mod suite;

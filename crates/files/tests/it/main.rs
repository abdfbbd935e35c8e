//! Tests of files: `suite.rs` runs on every storage, `folder.rs` on a folder alone.
#![allow(clippy::unwrap_used)]

mod folder;
mod storages;
mod suite;

//! Rendered output: files that are written whole or not at all.
//!
//! ```text
//!   Files ──▶ any object_store::ObjectStore: a folder today, S3 and others later
//!     └── address(name): the public address of a file, a path or a URL
//! ```
//!
//! A reader sees the old content of a file or the new, never half of it. Files are not synced to disk one
//! by one unless asked for: a PDF can be made again byte for byte from the store, and whoever serves one
//! checks its size and checksum.
//!
//! `tests/it` holds a conformance suite that runs on every storage. This crate must never know what is
//! inside a file.

mod address;
mod config;
mod error;
mod files;
mod name;

pub use address::{Address, PublicBase};
pub use config::{Config, Durability};
pub use error::Error;
pub use files::Files;

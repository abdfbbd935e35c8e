//! Pages for browsers. Today there is one: the gate page at `/gate`, where door staff scan tickets with a phone.
//!
//! The page is made of the files in `assets/`, which are part of the binary. There is no build step: the browser gets
//! the modules as they are written, without comments. The page holds no secret and needs no key; what it shows comes
//! from the API, which asks for one. This crate must never read records itself.
//!
//! ```text
//!   /gate                        the page; asks for nothing but what is below
//!   /gate/sw.js                  its service worker: keeps the page for phones without a network
//!   /gate/manifest.webmanifest   makes the page installable
//!   /gate/<version>/…            styles, modules, icons; <version> is a hash of all of them, so they never change
//! ```
//!
//! Adding a file to `assets/`? Also add it to the table in `files.rs`; a test compares the two.

mod files;
mod headers;
mod plain;
mod router;
mod site;

pub use router::router;

//! From an event to the PDFs of its tickets.
//!
//! ```text
//!   event ──▶ which template, which revision ──▶ compiled for this event (in memory, in the store,
//!             or by the compiler) ──▶ stamped, or typeset ticket by ticket
//! ```
//!
//! - [`Press`] finds the template of an event and has it compiled once for all processes.
//! - [`Ready`] is a template that can be printed; the revision in it is part of every PDF's fingerprint.
//! - [`Compiler`] is the door to Typst. This crate does not know what is behind it, so that neither
//!   the API nor a worker links Typst: people's code runs in processes of its own.
//! - [`Merger`] puts the tickets of a batch into one PDF, [`preflight()`] says what would go wrong.
//!
//! This crate must never know HTTP or queues.

mod cache;
mod compiler;
mod error;
mod merger;
mod preflight;
mod press;
mod ready;
pub mod sample;

pub use compiler::{Answer, Compiler, Design, Picture, Published, compile_for_author};
pub use error::Error;
pub use merger::Merger;
pub use preflight::{Warning, preflight};
pub use press::Press;
pub use ready::Ready;

//! From an event to the PDFs of its tickets.
//!
//! ```text
//!   event ──▶ which template, which revision ──▶ compiled for this event (in memory, in the store,
//!             or by the compiler) ──▶ stamped, or typeset ticket by ticket
//! ```
//!
//! - [`Press`] finds the template of an event and has it compiled once for all processes.
//! - [`Ready`] is a compiled template; its revision is part of every PDF's fingerprint.
//! - [`Compiler`] is the interface to Typst. Templates are code of organisers, so they run in processes of
//!   their own, and neither the API nor a worker links Typst.
//! - [`Merger`] puts the tickets of a batch into one PDF, [`preflight()`] lists what would not come out well.
//!
//! This crate must never know HTTP or queues.

mod cache;
mod code;
mod compiler;
mod error;
mod gate;
mod merger;
mod preflight;
mod press;
mod proven;
mod ready;
pub mod sample;

pub use code::{CodeShape, code_png, code_svg};
pub use compiler::{Answer, Compiler, Design, MergeSource, Picture, Published, compile_for_author};
pub use error::Error;
pub use gate::Share;
pub use merger::Merger;
pub use preflight::{Warning, preflight};
pub use press::{Found, Press, Room};
pub use ready::Ready;

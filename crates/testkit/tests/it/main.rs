//! The harness itself, with the real servers it starts.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod guarded;
mod postgres;
mod redis;

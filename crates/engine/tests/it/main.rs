//! Integration tests of the engine.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod crashes;
mod differential;
mod disk;
mod generate;
mod groups;
mod hostile;
mod loops;
mod process;
mod redis;
mod rules;
mod scale;
mod sessions;
mod shrink;
mod table;
mod wire;

//! Integration tests of the engine.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod crashes;
mod differential;
mod disk;
mod generate;
mod hostile;
mod loops;
mod lua;
mod process;
mod redis;
mod rules;
mod scale;
mod sessions;
mod shrink;
mod speed;
mod table;
mod waiting;
mod wire;

//! Integration tests of the engine.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod adds;
mod crashes;
mod differential;
mod disk;
mod documented;
mod edges;
mod generate;
mod groups;
mod hostile;
mod limits;
mod loops;
mod monitor;
mod newer;
mod process;
mod records;
mod redis;
mod rules;
mod scale;
mod sessions;
mod shrink;
mod table;
mod wire;

//! Integration tests of the engine.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod differential;
mod generate;
mod lua;
mod redis;
mod rules;
mod shrink;
mod speed;
mod table;
mod waiting;

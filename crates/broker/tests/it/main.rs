//! The broker against a real redis-server.
//!
//! Tests play the handler themselves: every run arrives as a value and ends when the test answers
//! (`stage.rs`), so that nothing depends on how long anything takes.
#![allow(clippy::unwrap_used)]

mod adding;
mod admin;
mod breaker;
mod chaos;
mod cluster;
mod connection;
mod consumer;
mod copy;
mod dead_letters;
mod events;
mod facts;
mod fleet;
mod flows;
mod forgotten;
mod interop;
mod job;
mod limits;
mod misbehaving;
mod outage;
mod queue;
mod reclaim;
mod servers;
mod stage;

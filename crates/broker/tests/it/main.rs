//! The broker against a real server: redis-server, or the one that `STAMPEDE_TEST_SERVER` names.
//!
//! Tests play the handler themselves: every run arrives as a value and ends when the test answers
//! (`stage.rs`), so that nothing depends on how long anything takes.
#![allow(clippy::unwrap_used)]

mod adding;
mod breaker;
mod changed_limits;
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
mod history;
mod interop;
mod job;
mod limits;
mod misbehaving;
mod operate;
mod outage;
mod permits;
mod queue;
mod quota;
mod reclaim;
mod scripts;
mod servers;
mod snapshots;
mod stage;
mod suspects;

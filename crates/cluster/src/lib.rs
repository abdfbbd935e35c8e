//! Worker processes: starting them, restarting them when they die, draining them.
//!
//! Workers are processes of the same binary, so that a crash, an abort or a leak in one never
//! touches the others or the API. This crate must never know what jobs they do.

mod supervisor;

pub use supervisor::{Supervisor, SupervisorConfig, WorkerEnv};

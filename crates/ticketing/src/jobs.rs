//! The jobs of this crate, one file each. A worker runs those that are on its list
//! (`crates/worker/src/jobs.rs`).

pub mod generate_ticket;

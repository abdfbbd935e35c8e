//! The jobs of this crate, one file each. A worker runs them if they are on its list
//! (`crates/worker/src/jobs.rs`).

pub(crate) mod generate_ticket;

//! Nodes, workers, scaling decisions and health.
//!
//! Nodes of other versions and other software write into the same keys of Redis, so records that stand there
//! keep fields they do not know (`open.rs`).

mod scaling;

pub use scaling::{Alert, By, Priority, ScalingAction, ScalingDecision, ScalingEvent};

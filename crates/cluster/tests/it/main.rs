//! Nodes and supervisors of real processes, beside a real redis-server.
#![allow(clippy::unwrap_used)]

mod node;
mod supervisor;

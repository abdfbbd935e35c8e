//! Supervisors of real processes, beside a real redis-server.
#![allow(clippy::unwrap_used)]

mod supervisor;

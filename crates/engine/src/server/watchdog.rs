//! The watchdog: answers clients while a script runs too long.
//!
//! A script runs on the thread of the loop that read it, under the executor's lock. A script that
//! does not end blocks that loop and all others. Past the busy threshold the watchdog drives the
//! loops whose threads are stuck. It answers `BUSY` and lets `SCRIPT KILL` through.

use std::sync::Arc;
use std::sync::TryLockError;
use std::time::Duration;

use mio::Registry;

use super::event_loop::{Driver, EventLoop};
use super::shared::Shared;

/// The interval of checks for a script that runs too long.
const PERIOD: Duration = Duration::from_millis(50);
/// The poll timeout for one stuck loop.
const LISTEN: Duration = Duration::from_millis(5);

/// Runs until the server stops.
pub(super) fn run(shared: &Arc<Shared>, registries: Vec<Registry>) {
    let mut loops: Vec<EventLoop> = registries
        .into_iter()
        .enumerate()
        .map(|(index, registry)| EventLoop::new(shared.clone(), index, Driver::Watchdog, registry))
        .collect();
    let mut warned = false;
    while !shared.is_stopping() {
        if !shared.is_busy() {
            warned = false;
            std::thread::park_timeout(PERIOD);
            continue;
        }
        if !warned {
            tracing::warn!("a script runs too long; clients get BUSY until it ends or is killed");
            warned = true;
        }
        let mut stuck = false;
        for (index, event_loop) in loops.iter_mut().enumerate() {
            let state = match shared.loops[index].state.try_lock() {
                Ok(state) => state,
                Err(TryLockError::Poisoned(state)) => state.into_inner(),
                // Its own thread drives it.
                Err(TryLockError::WouldBlock) => continue,
            };
            stuck = true;
            if let Err(error) = event_loop.serve_as_watchdog(shared, state, LISTEN) {
                tracing::error!(%error, "the watchdog could not listen");
            }
        }
        if !stuck {
            std::thread::park_timeout(PERIOD);
        }
    }
}

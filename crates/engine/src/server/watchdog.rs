//! The watchdog: answers clients while a script keeps the executor.
//!
//! Scripts run on the thread of the loop that read them, so a script that does not end keeps that
//! loop, and others that need the executor. Past the threshold the watchdog takes the turns of loops
//! whose threads are stuck, tells everybody `BUSY`, and lets `SCRIPT KILL` through.

use std::sync::Arc;
use std::sync::TryLockError;
use std::time::Duration;

use mio::Registry;

use super::event_loop::{EventLoop, Turn};
use super::shared::Shared;

/// How often it looks whether a script takes too long.
const PERIOD: Duration = Duration::from_millis(50);
/// How long it listens for clients of a stuck loop at a time.
const LISTEN: Duration = Duration::from_millis(5);

/// Watches until the server stops.
pub(super) fn run(shared: &Arc<Shared>, registries: Vec<Registry>) {
    let mut loops: Vec<EventLoop> = registries
        .into_iter()
        .enumerate()
        .map(|(index, registry)| EventLoop::new(shared.clone(), index, Turn::Watchdog, registry))
        .collect();
    let mut told = false;
    while !shared.is_stopping() {
        if !shared.is_busy() {
            told = false;
            std::thread::park_timeout(PERIOD);
            continue;
        }
        if !told {
            tracing::warn!(
                "a script runs too long; clients are told BUSY until it ends or is killed"
            );
            told = true;
        }
        let mut stuck = false;
        for (index, event_loop) in loops.iter_mut().enumerate() {
            let state = match shared.loops[index].state.try_lock() {
                Ok(state) => state,
                Err(TryLockError::Poisoned(state)) => state.into_inner(),
                // Its own thread is there.
                Err(TryLockError::WouldBlock) => continue,
            };
            stuck = true;
            if let Err(error) = event_loop.stand_in(shared, state, LISTEN) {
                tracing::error!(%error, "the watchdog could not listen");
            }
        }
        if !stuck {
            std::thread::park_timeout(PERIOD);
        }
    }
}

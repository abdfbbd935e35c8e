//! Campaigns with a real store, a real Redis, and a receiver that records every message.
#![allow(clippy::unwrap_used)]

mod accounts;
mod alerts;
mod audience;
mod breaker;
mod compiler;
mod guests;
mod history;
mod hours;
mod imports;
mod killed;
mod pacing;
mod sending;
mod shares;
mod slow_mail;
mod stage;
mod stopping;
mod trials;

//! Hooks of the test harness. Release builds ignore them.
//!
//! | variable | effect |
//! |---|---|
//! | `STAMPEDE_HANG_AT=order-committed` | an order hangs between its commit and its enqueueing |
//! | `STAMPEDE_POISON=text` | stamping a ticket with this text in its name ends the process |
//! | `STAMPEDE_SLOW_TICKETS=200` | making a ticket takes 200 ms longer |

use std::time::Duration;

use stampede_model::TicketDocument;

/// Waits forever if the harness asks for it by this name, so that it can kill the process at this point.
pub(crate) async fn hang_at(name: &str) {
    if cfg!(debug_assertions) && std::env::var("STAMPEDE_HANG_AT").as_deref() == Ok(name) {
        tracing::warn!(name, "hanging here because STAMPEDE_HANG_AT says so");
        std::future::pending::<()>().await;
    }
}

/// Takes as long as the harness asks for, so that jobs can be caught in the middle.
pub(crate) async fn slow_down() {
    if cfg!(debug_assertions)
        && let Some(ms) = std::env::var("STAMPEDE_SLOW_TICKETS").ok().and_then(|ms| ms.parse().ok())
    {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

/// Ends the process if the harness calls this ticket poisonous. (A child of the sandbox does so, too.)
pub(crate) fn die_of_poison(document: &TicketDocument) {
    if cfg!(debug_assertions)
        && let Ok(text) = std::env::var("STAMPEDE_POISON")
        && !text.is_empty()
        && document.name.contains(&text)
    {
        std::process::abort();
    }
}

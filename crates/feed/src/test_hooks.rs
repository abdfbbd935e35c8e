//! Hooks of the test harness. Release builds ignore them.
//!
//! | variable | effect |
//! |---|---|
//! | `STAMPEDE_HANG_AT=feed-appended` | the relay hangs after it has appended events and before it settles their rows |

/// Waits forever if the harness asks for it by this name, so that it can kill the process at this point.
pub(crate) async fn hang_at(name: &str) {
    if cfg!(debug_assertions) && std::env::var("STAMPEDE_HANG_AT").as_deref() == Ok(name) {
        tracing::warn!(name, "hanging here because STAMPEDE_HANG_AT says so");
        std::future::pending::<()>().await;
    }
}

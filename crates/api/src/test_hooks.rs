//! Hooks of the test harness. Release builds ignore them.
//!
//! | variable | effect |
//! |---|---|
//! | `STAMPEDE_HANG_AT=change-begun:updateEvent` | the operation hangs when its entry is in the audit log, before it changes anything |
//! | `STAMPEDE_HANG_AT=change-made:updateEvent` | the operation hangs when it has changed something, before its entry is settled |

/// Waits forever if the harness asks for it by this name, so that it can kill the process at this point.
pub(crate) async fn hang_at(point: &str, operation: &str) {
    if cfg!(debug_assertions)
        && std::env::var("STAMPEDE_HANG_AT").is_ok_and(|at| at == format!("{point}:{operation}"))
    {
        tracing::warn!(point, operation, "hanging here because STAMPEDE_HANG_AT says so");
        std::future::pending::<()>().await;
    }
}

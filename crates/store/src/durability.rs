//! What a committed change survives: chosen for each operation, not for each connection.
//!
//! Commits are written to one log, in order. A relaxed commit is lost only together with every commit
//! after it, and a synced commit makes all earlier commits durable too. So a power cut never leaves
//! half of a change, and never a later change without an earlier one.
//!
//! | operation | durability | reason |
//! |---|---|---|
//! | events, orders, edits, voids, reissues, deletions | synced | the caller was told that it is done, and nobody else remembers it |
//! | API keys, ticket keys, the ticket secret | synced | a revoked key must not come back; a printed ticket needs its key |
//! | templates and revisions | synced | the author's only copy may be here |
//! | `fail_tickets` | synced | rare, final, and the organiser acts on it |
//! | scans, undone scans, check-in lists, gates, devices | synced | a guest was let in because of it, and a second one must not be |
//! | `complete_tickets` | relaxed | the ticket is pending again, and the reconciler has the same PDF made again |
//! | `mark_stale` | relaxed | the next reader notices the bad file again |
//! | `touch_device` | relaxed | the device shows up again |
//! | `keep_compiled_template` | relaxed | a cache: it is compiled again |
//!
//! Adding an operation? It is synced unless the same result comes about again without a person.

/// What a commit promises when its call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The change survives a power cut: it is on the disk.
    Synced,
    /// A power cut may undo the change; the database stays consistent.
    Relaxed,
}

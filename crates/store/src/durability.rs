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
//! | `keep_sealed` of a request that may be sent twice | synced | the request must not be carried out again |
//! | `claim`, `release` of such a request | relaxed | what was carried out under a claim is committed after it, so a lost claim loses that, too |
//! | `forget_requests` | relaxed | they are forgotten later |
//! | webhooks, deliveries that are made, failed or asked for again | synced | a message must reach its receiver; a secret was shown once |
//! | attempts that delivered or are repeated, `mark_queued`, `forget_deliveries` | relaxed | the message is sent again under the same id; the job is added again |
//! | accounts, campaigns, suppressions, `apply_wishes`, claims, results of runs, receipts, what people settle | synced | a message is never sent twice, nor to somebody who said stop |
//! | `feed_campaign` | relaxed | the recipients are queued again; a job that is added twice changes nothing |
//! | pieces of an import, whose guests they are | relaxed | the end of the import is synced, and makes its pieces durable, too |
//! | `undo_import`, `forget_campaigns`, `skip_cancelled` | relaxed | they are removed or skipped again |
//! | `tell_campaigns` | relaxed | they are told again |
//! | `complete_tickets` | relaxed | the ticket is pending again, and the reconciler has the same PDF made again |
//! | `settle_outbox` | relaxed | the rows are told again, under the same ids |
//! | `mark_stale` | relaxed | the next reader notices the bad file again |
//! | `append_audit` | as the caller says | it commits before its change: a change of this database that is synced makes its entry durable, too |
//! | `settle_audit`, removal of old entries | relaxed | the outcome is unknown again; old entries are removed again |
//! | `touch_device` | relaxed | the device shows up again |
//! | `keep_compiled_template` | relaxed | a cache: it is compiled again |
//!
//! Rows of the outbox are part of the change that they tell of: they share its durability.
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

//! The audit log.

use stampede_model::AuditId;
use stampede_wire::audit::{Entry, EntryPage};

use crate::{Client, Result, with_query};

/// Entries to list; what is absent matches all.
#[derive(Debug, Clone, Default)]
pub struct AuditQuery {
    /// Only changes by this user.
    pub user: Option<String>,
    /// Only this operation.
    pub operation: Option<String>,
    /// Only changes of this record.
    pub record: Option<String>,
    /// Only changes of records of this event.
    pub event: Option<String>,
    /// Only entries from this moment on.
    pub from: Option<String>,
    /// Only entries before this moment.
    pub to: Option<String>,
}

impl Client {
    /// A page of the audit log, newest first.
    pub async fn audit(
        &self,
        query: &AuditQuery,
        after: Option<AuditId>,
        limit: u32,
    ) -> Result<EntryPage> {
        let (after, limit) = (after.map(|id| id.to_string()), limit.to_string());
        let parameters = [
            ("user", query.user.as_deref()),
            ("operation", query.operation.as_deref()),
            ("record", query.record.as_deref()),
            ("event", query.event.as_deref()),
            ("from", query.from.as_deref()),
            ("to", query.to.as_deref()),
            ("after", after.as_deref()),
            ("limit", Some(limit.as_str())),
        ];
        self.get(&with_query("/api/audit", &parameters)).await
    }

    /// An entry of the audit log.
    pub async fn audit_entry(&self, id: AuditId) -> Result<Entry> {
        self.get(&format!("/api/audit/{id}")).await
    }
}

//! Parts of lists in SQL.

use stampede_model::{AuditId, Timestamp};

use crate::{Slice, Sorted};

/// The conditions of a part, for a table whose key is `id`.
pub(super) fn conditions<I: ToString>(slice: &Slice<I>) -> Vec<(&'static str, String)> {
    let beyond = match slice.sorted {
        Sorted::NewestFirst => "id <",
        Sorted::OldestFirst => "id >",
    };
    // Ids of all kinds begin with their time.
    let earliest = |at: Timestamp| AuditId::earliest(at).to_string();
    let mut conditions = Vec::new();
    conditions.extend(slice.after.as_ref().map(|id| (beyond, id.to_string())));
    conditions.extend(slice.from.map(|at| ("id >=", earliest(at))));
    conditions.extend(slice.to.map(|at| ("id <", earliest(at))));
    conditions
}

/// The order of a part.
pub(super) fn order<I>(slice: &Slice<I>) -> &'static str {
    match slice.sorted {
        Sorted::NewestFirst => "id DESC",
        Sorted::OldestFirst => "id",
    }
}

//! Changes that a command makes right in the database: the audit log names the user of the operating system.

use anyhow::Result;
use rustix::process::{geteuid, getuid};
use serde::Serialize;
use serde_json::Value;
use stampede_audit::{Attempt, Audit, AuditOrigin, Ending, Subject};
use stampede_model::Role;
use stampede_store::Store;

/// Makes a change and keeps it in the audit log: its entry is committed before the change, and settled after it.
pub(crate) async fn audited<T, E>(
    store: &Store,
    operation: &str,
    subject: Subject,
    before: Option<Value>,
    change: impl Future<Output = Result<T, E>>,
    after: impl FnOnce(&T) -> Option<Value>,
) -> Result<T>
where
    anyhow::Error: From<E>,
{
    let audit = Audit::new(store.clone());
    let attempt = Attempt {
        user: os_user(),
        role: Role::Admin,
        key: None,
        origin: AuditOrigin::Command,
        address: None,
        request_id: None,
        operation: operation.to_owned(),
    };
    let entry = audit.begin(&attempt, &subject, before).await?;
    let changed = change.await;
    let (status, after) = match &changed {
        Ok(value) => (200, after(value)),
        Err(_) => (500, None),
    };
    audit.settle(entry, Ending { status, before: None, after }).await?;
    Ok(changed?)
}

/// A record as the log keeps it.
pub(crate) fn json(record: &impl Serialize) -> Option<Value> {
    serde_json::to_value(record).ok()
}

/// The user who runs this command, by name if the machine knows one. With `sudo`, both are told.
fn os_user() -> String {
    let name = named(geteuid().as_raw());
    let before_sudo = std::env::var("SUDO_USER").ok().filter(|user| !user.is_empty());
    match before_sudo {
        Some(user) if getuid().is_root() => {
            format!("{name} (sudo by {})", stampede_model::Printable::line(user))
        }
        _ => name,
    }
}

fn named(uid: u32) -> String {
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let found = passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, id) = (fields.next()?, fields.nth(1)?);
        (id.parse() == Ok(uid)).then(|| name.to_owned())
    });
    found.unwrap_or_else(|| format!("uid {uid}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_without_a_name_is_told_by_number() {
        assert_eq!(named(0), "root");
        assert_eq!(named(u32::MAX - 7), format!("uid {}", u32::MAX - 7));
    }
}

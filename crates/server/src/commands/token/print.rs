//! API keys as tables.

use stampede_model::{Printable, Timestamp};
use stampede_wire::identity::{Key, KeyKind};

use crate::commands::table::Table;

pub(super) fn list(keys: &[Key]) {
    let head = ["name", "id", "role", "user", "limited to", "state", "expires", "last used"];
    let mut table = Table::new(head);
    for key in keys {
        table.row(vec![
            name(key),
            key.id.to_string(),
            key.role.to_string(),
            key.user.clone(),
            limits(key),
            key.state.as_str().to_owned(),
            time(key.expires_at, "never"),
            time(key.last_used_at, "-"),
        ]);
    }
    table.print("there are no keys");
}

pub(super) fn one(key: &Key) {
    for (field, value) in [
        ("name", name(key)),
        ("id", key.id.to_string()),
        ("role", key.role.to_string()),
        ("user", key.user.clone()),
        ("limited to", limits(key)),
        ("state", key.state.as_str().to_owned()),
        ("created", time(Some(key.created_at), "-")),
        ("expires", time(key.expires_at, "never")),
        ("revoked", time(key.revoked_at, "-")),
        ("last used", time(key.last_used_at, "-")),
        ("from", key.last_used_from.clone().unwrap_or_else(|| "-".to_owned())),
        ("former secret works until", time(key.grace_until, "-")),
    ] {
        println!("{field:<26}{}", Printable::line(&value));
    }
}

fn name(key: &Key) -> String {
    match (key.kind, key.name.as_str()) {
        (KeyKind::Preset, _) => "(ADMIN_KEY)".to_owned(),
        (KeyKind::Device, name) => format!("{name} (device)"),
        (KeyKind::Key, "") => "-".to_owned(),
        (KeyKind::Key, name) => name.to_owned(),
    }
}

fn limits(key: &Key) -> String {
    let event = key.event.map(|event| format!("event {event}"));
    let queues = key.queues.as_ref().map(|names| format!("queues {}", names.join(", ")));
    let limits: Vec<String> = event.into_iter().chain(queues).collect();
    if limits.is_empty() { "-".to_owned() } else { limits.join(" and ") }
}

fn time(time: Option<Timestamp>, absent: &str) -> String {
    time.map_or_else(|| absent.to_owned(), |time| time.strftime("%Y-%m-%d %H:%M").to_string())
}

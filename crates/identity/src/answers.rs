//! Keys as the API tells them.

use stampede_model::Timestamp;
use stampede_store::{ApiKey, KeyKind, KeyState};
use stampede_wire::identity as wire;

/// A key as the API tells it.
pub(crate) fn key(key: ApiKey, now: Timestamp) -> wire::Key {
    let state = state(key.state(now));
    let principal = key.principal;
    wire::Key {
        id: key.id,
        name: key.name,
        kind: match key.kind {
            KeyKind::Issued => wire::KeyKind::Key,
            KeyKind::Preset => wire::KeyKind::Preset,
            KeyKind::Device => wire::KeyKind::Device,
        },
        role: principal.role,
        user: principal.user,
        event: principal.scope.event,
        queues: principal.scope.queues,
        state,
        created_at: key.created_at,
        updated_at: key.updated_at,
        expires_at: principal.expires_at,
        revoked_at: key.revoked_at,
        last_used_at: key.last_used_at,
        last_used_from: key.last_used_from,
        grace_until: key.former_until,
    }
}

fn state(state: KeyState) -> wire::KeyState {
    match state {
        KeyState::Active => wire::KeyState::Active,
        KeyState::Expired => wire::KeyState::Expired,
        KeyState::Revoked => wire::KeyState::Revoked,
    }
}

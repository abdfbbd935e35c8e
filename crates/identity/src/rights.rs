//! Which keys a caller may make and manage: pure functions.
//!
//! | caller | makes | manages |
//! |---|---|---|
//! | admin | any key | any key |
//! | organiser | keys of its own user with the roles organiser, scanner and viewer, which end no later than its own key | these |
//! | any key with a scope | keys whose scope is within its own | keys whose scope is within its own |

use stampede_model::{EVERYBODY, Principal, Role, Scope, Timestamp};
use stampede_store::{ApiKey, KeyKind};

use crate::keys::{KeyRequest, Refused};

/// Whether the caller may see a key.
pub(crate) fn may_read(caller: &Principal, key: &ApiKey) -> Result<(), Refused> {
    if !caller.may_read(&key.principal.user) {
        return Err(Refused::NotYours);
    }
    within(caller, &key.principal.scope)
}

/// Whether the caller may change or end a key.
pub(crate) fn may_manage(caller: &Principal, key: &ApiKey) -> Result<(), Refused> {
    may_read(caller, key)?;
    if key.kind == KeyKind::Preset {
        return Err(Refused::Preset);
    }
    may_hand_out(caller, &key.principal.user, key.principal.role)
}

/// Whether the caller may have a new secret of a key: it must not work longer than the caller's own.
pub(crate) fn may_rotate(caller: &Principal, key: &ApiKey) -> Result<(), Refused> {
    may_manage(caller, key)?;
    match latest_end(caller) {
        Some(own) if key.principal.expires_at.is_none_or(|end| end > own) => Err(Refused::Outlives),
        _ => Ok(()),
    }
}

/// The user, role, scope and end of a key to be made. What the request leaves out is as in the caller's key.
pub(crate) fn may_make(caller: &Principal, request: &KeyRequest) -> Result<Principal, Refused> {
    let user = request.user.clone().unwrap_or_else(|| caller.user.clone());
    may_hand_out(caller, &user, request.role)?;
    let scope = Scope { event: request.event, queues: request.queues.clone() };
    let scope = if scope.is_limited() { scope } else { caller.scope.clone() };
    within(caller, &scope)?;
    if scope.queues.is_some() && request.role != Role::Admin {
        let rule = "can only be given to keys with the role admin: others reach no queue";
        return Err(Refused::Field("queues", rule.to_owned()));
    }
    let expires_at = end_of_new(caller, request.expires_at)?;
    Ok(Principal { scope, expires_at, ..Principal::new(user, request.role) })
}

/// The end of a key that the caller makes or changes; absent: the end of the caller's own.
pub(crate) fn end_of_new(
    caller: &Principal,
    wanted: Option<Timestamp>,
) -> Result<Option<Timestamp>, Refused> {
    match (latest_end(caller), wanted) {
        (Some(own), Some(end)) if end > own => {
            let rule = format!("must not be later than {own}, when your own key ends");
            Err(Refused::Field("expiresAt", rule))
        }
        (own, wanted) => Ok(wanted.or(own)),
    }
}

/// When keys that the caller makes must have ended; `None`: they need not end.
pub fn latest_end(caller: &Principal) -> Option<Timestamp> {
    caller.expires_at.filter(|_| caller.role != Role::Admin)
}

fn within(caller: &Principal, scope: &Scope) -> Result<(), Refused> {
    if caller.scope.contains(scope) { Ok(()) } else { Err(Refused::OutOfScope) }
}

/// Organisers hand out no admin's key, no key of other users, and none that reads everybody's records.
fn may_hand_out(caller: &Principal, user: &str, role: Role) -> Result<(), Refused> {
    if caller.role == Role::Admin {
        return Ok(());
    }
    let reads_everything = Principal::new(user, role).reads_everything();
    if caller.user != user || !caller.may_write() || reads_everything || user == EVERYBODY {
        return Err(Refused::NeedsAdmin);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use stampede_model::{EventId, KeyId};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn request(role: Role) -> KeyRequest {
        KeyRequest {
            name: "x".into(),
            role,
            user: None,
            event: None,
            queues: None,
            expires_at: None,
        }
    }

    fn key(principal: Principal, kind: KeyKind) -> ApiKey {
        ApiKey {
            id: KeyId::generate(),
            kind,
            name: "x".into(),
            principal,
            created_at: at(0),
            updated_at: at(0),
            revoked_at: None,
            last_used_at: None,
            last_used_from: None,
            former_until: None,
        }
    }

    #[test]
    fn organisers_make_keys_of_their_own_user_below_their_own_role() {
        let ann = Principal::new("ann", Role::Organiser);
        for (role, fits) in [
            (Role::Admin, false),
            (Role::Organiser, true),
            (Role::Scanner, true),
            (Role::Viewer, true),
        ] {
            assert_eq!(may_make(&ann, &request(role)).is_ok(), fits, "{role}");
        }
        let bobs = KeyRequest { user: Some("bob".into()), ..request(Role::Viewer) };
        assert_eq!(may_make(&ann, &bobs), Err(Refused::NeedsAdmin));
        assert!(may_make(&Principal::new("root", Role::Admin), &bobs).is_ok());
        // A viewer of everybody would read more than an organiser who is called so.
        let star = Principal::new(EVERYBODY, Role::Organiser);
        assert_eq!(may_make(&star, &request(Role::Viewer)), Err(Refused::NeedsAdmin));
    }

    #[test]
    fn no_key_makes_one_that_reaches_further_or_lives_longer() {
        let event = EventId::generate();
        let scope = Scope { event: Some(event), queues: None };
        let expires_at = Some(at(100));
        let ann = Principal { scope, expires_at, ..Principal::new("ann", Role::Organiser) };
        let made = may_make(&ann, &request(Role::Scanner)).unwrap();
        assert_eq!((made.scope.event, made.expires_at), (Some(event), Some(at(100))));
        let other = KeyRequest { event: Some(EventId::generate()), ..request(Role::Viewer) };
        assert_eq!(may_make(&ann, &other), Err(Refused::OutOfScope));
        let late = KeyRequest { expires_at: Some(at(101)), ..request(Role::Viewer) };
        assert!(matches!(may_make(&ann, &late), Err(Refused::Field("expiresAt", _))));
        let admin = Principal { role: Role::Admin, ..ann.clone() };
        assert!(may_make(&admin, &late).is_ok());
        assert_eq!(may_make(&admin, &other), Err(Refused::OutOfScope));
        let queues = KeyRequest { queues: Some(vec!["mails".into()]), ..request(Role::Admin) };
        assert_eq!(may_make(&admin, &queues), Err(Refused::OutOfScope));
        let root = Principal::new("root", Role::Admin);
        assert!(may_make(&root, &queues).is_ok());
        let viewer = KeyRequest { role: Role::Viewer, ..queues };
        assert!(matches!(may_make(&root, &viewer), Err(Refused::Field("queues", _))));
    }

    #[test]
    fn no_secret_is_handed_out_that_opens_more_than_the_caller_could() {
        let expires_at = Some(at(100));
        let ann = Principal { expires_at, ..Principal::new("ann", Role::Organiser) };
        let issued = |principal| key(principal, KeyKind::Issued);
        let own = Principal::new("ann", Role::Organiser);
        assert_eq!(may_rotate(&ann, &issued(own.clone())), Err(Refused::Outlives));
        assert_eq!(may_manage(&ann, &issued(own.clone())), Ok(()));
        assert_eq!(may_rotate(&own, &issued(own.clone())), Ok(()));
        let admins = Principal::new("ann", Role::Admin);
        assert_eq!(may_manage(&own, &issued(admins)), Err(Refused::NeedsAdmin));
        let bobs = Principal::new("bob", Role::Viewer);
        assert_eq!(may_manage(&own, &issued(bobs.clone())), Err(Refused::NotYours));
        let root = Principal::new("root", Role::Admin);
        assert_eq!(may_rotate(&root, &issued(bobs)), Ok(()));
        assert_eq!(may_rotate(&root, &key(root.clone(), KeyKind::Preset)), Err(Refused::Preset));
        let scope = Scope { event: Some(EventId::generate()), queues: None };
        let limited = Principal { scope, ..root.clone() };
        assert_eq!(may_read(&limited, &issued(root)), Err(Refused::OutOfScope));
    }
}

//! API keys: issued, named, listed, changed, rotated, revoked, preset.

use stampede_model::{EventId, GateId, KeyHash, KeyId, Principal, Role, Scope};
use stampede_store::{
    ApiKey, KeyEdit, KeyFilter, KeyKind, KeyRotated, KeyState, KeyUse, KeyWritten, NewDevice,
    NewKey, Store,
};

use crate::backends::Database;
use crate::suite::samples::{at, event};

on_every_backend!(
    a_key_works_until_it_is_revoked,
    a_key_has_a_scope_and_an_end,
    there_is_exactly_one_preset_key,
    the_preset_key_may_equal_an_issued_one,
    a_name_belongs_to_one_key_of_a_user_until_it_is_revoked,
    of_many_keys_with_one_name_at_once_one_is_made,
    keys_are_listed_by_user_role_name_state_and_scope,
    a_key_is_changed_unless_it_is_revoked_or_preset,
    a_replaced_secret_works_until_its_grace_ends,
    former_secrets_end_with_their_key,
    a_key_is_revoked_by_its_id,
    uses_are_noted_and_an_older_one_changes_nothing,
);

fn admin() -> Principal {
    Principal::new("admin", Role::Admin)
}

/// A key that never ends.
fn key(secret: &str, principal: Principal) -> NewKey {
    NewKey {
        id: KeyId::generate(),
        hash: KeyHash::of(secret),
        principal,
        name: "laptop".into(),
        expires_at: None,
    }
}

/// The user, role and scope behind a key at a time.
async fn holder(store: &Store, secret: &str, second: u64) -> Option<Principal> {
    let found = store.principal(&KeyHash::of(secret), at(second)).await.unwrap();
    found.map(|principal| Principal { key: None, ..principal })
}

async fn a_key_works_until_it_is_revoked(db: Database) {
    let store = db.store().await;
    let ann = Principal::new("ann", Role::Organiser);
    let hash = KeyHash::of("secret");
    assert_eq!(holder(&store, "secret", 0).await, None);
    let laptop = key("secret", ann.clone());
    store.insert_key(&laptop, at(0)).await.unwrap();
    let found = store.principal(&hash, at(0)).await.unwrap();
    assert_eq!(found, Some(Principal { key: Some(laptop.id), ..ann }));
    assert_eq!(holder(&store, "Secret", 0).await, None);
    assert!(!store.has_admin_key().await.unwrap());

    let root = KeyHash::of("root");
    store.insert_key(&key("root", admin()), at(0)).await.unwrap();
    assert!(store.has_admin_key().await.unwrap());
    assert!(store.revoke_key(&root, at(1)).await.unwrap());
    assert!(!store.has_admin_key().await.unwrap());

    assert!(store.revoke_key(&hash, at(1)).await.unwrap());
    assert!(!store.revoke_key(&hash, at(2)).await.unwrap());
    assert!(!store.revoke_key(&KeyHash::of("unknown"), at(2)).await.unwrap());
    assert_eq!(holder(&store, "secret", 2).await, None);
}

async fn a_key_has_a_scope_and_an_end(db: Database) {
    let store = db.store().await;
    let event = event("ann");
    store.insert_event(&event).await.unwrap();
    let scope = Scope { event: Some(event.id), queues: Some(vec!["mails".into(), "a\"b".into()]) };
    let expires_at = Some(at(10));
    let ann = Principal { scope, expires_at, ..Principal::new("ann", Role::Scanner) };
    let door = NewKey { expires_at: Some(at(10)), ..key("door", ann.clone()) };
    store.insert_key(&door, at(0)).await.unwrap();
    assert_eq!(holder(&store, "door", 9).await, Some(ann));
    assert_eq!(holder(&store, "door", 10).await, None);
}

async fn there_is_exactly_one_preset_key(db: Database) {
    let store = db.store().await;
    let (former, new) = (KeyHash::of("former"), KeyHash::of("new"));
    let nodes = (0..6).map(|_| {
        let (store, former) = (store.clone(), former.clone());
        tokio::spawn(async move { store.preset_admin_key(Some(&former), at(0)).await.unwrap() })
    });
    for node in nodes.collect::<Vec<_>>() {
        node.await.unwrap();
    }
    assert_eq!(holder(&store, "former", 1).await, Some(admin()));
    assert!(store.has_admin_key().await.unwrap());
    store.preset_admin_key(Some(&new), at(1)).await.unwrap();
    assert_eq!(holder(&store, "former", 1).await, None);
    assert_eq!(holder(&store, "new", 1).await, Some(admin()));

    for _ in 0..2 {
        store.preset_admin_key(None, at(2)).await.unwrap();
        assert_eq!(holder(&store, "new", 1).await, None);
        assert!(!store.has_admin_key().await.unwrap());
    }
    store.preset_admin_key(Some(&new), at(3)).await.unwrap();
    assert_eq!(holder(&store, "new", 1).await, Some(admin()));
}

async fn the_preset_key_may_equal_an_issued_one(db: Database) {
    let store = db.store().await;
    let hash = KeyHash::of("secret");
    let viewer = Principal::new("ann", Role::Viewer);
    store.insert_key(&key("secret", viewer), at(0)).await.unwrap();
    store.preset_admin_key(Some(&hash), at(1)).await.unwrap();
    assert_eq!(holder(&store, "secret", 1).await, Some(admin()));
}

fn ann() -> Principal {
    Principal::new("ann", Role::Organiser)
}

/// A key with a name.
fn named(name: &str, principal: Principal) -> NewKey {
    NewKey { name: name.into(), ..key(name, principal) }
}

async fn read(store: &Store, id: KeyId) -> ApiKey {
    store.api_key(id, at(5)).await.unwrap().unwrap()
}

async fn a_name_belongs_to_one_key_of_a_user_until_it_is_revoked(db: Database) {
    let store = db.store().await;
    let first = named("laptop", ann());
    assert_eq!(store.insert_named_key(&first, at(0)).await.unwrap(), KeyWritten::Done);
    let second = NewKey { hash: KeyHash::of("second"), ..named("laptop", ann()) };
    assert_eq!(store.insert_named_key(&second, at(0)).await.unwrap(), KeyWritten::NameTaken);
    assert_eq!(holder(&store, "second", 1).await, None, "nothing of it was written");
    let bobs = named("laptop", Principal::new("bob", Role::Organiser));
    assert_eq!(store.insert_named_key(&bobs, at(0)).await.unwrap(), KeyWritten::Done);
    // A key without a name of its own may have the same label.
    store.insert_key(&key("unnamed", ann()), at(0)).await.unwrap();
    let phone = named("phone", ann());
    assert_eq!(store.insert_named_key(&phone, at(0)).await.unwrap(), KeyWritten::Done);
    let rename = KeyEdit { name: Some("laptop".into()), expires_at: Some(Some(at(99))) };
    assert_eq!(
        store.edit_key_as_seen(phone.id, &rename, None, at(0)).await.unwrap(),
        KeyWritten::NameTaken
    );
    let kept = read(&store, phone.id).await;
    assert_eq!((kept.name.as_str(), kept.principal.expires_at), ("phone", None));
    assert!(store.end_key(first.id, at(1)).await.unwrap());
    assert_eq!(
        store.edit_key_as_seen(phone.id, &rename, None, at(0)).await.unwrap(),
        KeyWritten::Done
    );
    assert_eq!(read(&store, phone.id).await.name, "laptop");
}

async fn of_many_keys_with_one_name_at_once_one_is_made(db: Database) {
    let store = db.store().await;
    let tries = (0..8).map(|number| {
        let store = store.clone();
        let own = NewKey { hash: KeyHash::of(&number.to_string()), ..named("laptop", ann()) };
        tokio::spawn(async move { store.insert_named_key(&own, at(0)).await.unwrap() })
    });
    let mut made = 0;
    for task in tries.collect::<Vec<_>>() {
        made += usize::from(task.await.unwrap() == KeyWritten::Done);
    }
    assert_eq!(made, 1);
}

async fn names(store: &Store, filter: KeyFilter) -> Vec<String> {
    let found = store.api_keys(&filter, None, 100, at(5)).await.unwrap();
    found.into_iter().map(|key| key.name).collect()
}

/// Keys of an event, of queues and of all, in the order of their making.
async fn some_keys(store: &Store, event: EventId) -> Vec<KeyId> {
    let queues = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect());
    let scoped = |event, queues| Principal { scope: Scope { event, queues }, ..admin() };
    let mut ids = Vec::new();
    for (name, principal, expires_at) in [
        ("all", ann(), None),
        ("old", ann(), Some(at(5))),
        ("event", Principal { role: Role::Viewer, ..scoped(Some(event), None) }, Some(at(6))),
        ("mails", scoped(None, queues(&["mails"])), None),
        ("both", scoped(Some(event), queues(&["mails", "slow"])), None),
    ] {
        let key = NewKey { expires_at, ..named(name, principal) };
        assert_eq!(store.insert_named_key(&key, at(0)).await.unwrap(), KeyWritten::Done);
        ids.push(key.id);
    }
    ids
}

async fn keys_are_listed_by_user_role_name_state_and_scope(db: Database) {
    let store = db.store().await;
    let event = event("ann");
    store.insert_event(&event).await.unwrap();
    let ids = some_keys(&store, event.id).await;
    assert!(store.end_key(ids[0], at(2)).await.unwrap());
    store.preset_admin_key(Some(&KeyHash::of("preset")), at(1)).await.unwrap();
    let all = KeyFilter::default;
    let newest = ["both", "mails", "event", "old", "all", "preset"];
    assert_eq!(names(&store, all()).await, newest);
    assert_eq!(
        names(&store, KeyFilter { user: Some("ann".into()), ..all() }).await,
        ["old", "all"]
    );
    assert_eq!(names(&store, KeyFilter { role: Some(Role::Viewer), ..all() }).await, ["event"]);
    assert_eq!(names(&store, KeyFilter { name: Some("mails".into()), ..all() }).await, ["mails"]);
    for (state, found) in [
        (KeyState::Revoked, &["all"][..]),
        (KeyState::Expired, &["old"]),
        (KeyState::Active, &["both", "mails", "event", "preset"]),
    ] {
        assert_eq!(names(&store, KeyFilter { state: Some(state), ..all() }).await, found);
        let listed = store.api_keys(&all(), None, 9, at(5)).await.unwrap();
        assert_eq!(listed.iter().filter(|key| key.state(at(5)) == state).count(), found.len());
    }
    let within = |event, queues: &[&str]| KeyFilter {
        within: Scope {
            event,
            queues: (!queues.is_empty()).then(|| queues.iter().map(|&q| q.to_owned()).collect()),
        },
        ..all()
    };
    assert_eq!(names(&store, within(Some(event.id), &[])).await, ["event"]);
    assert_eq!(names(&store, within(None, &["mails", "x"])).await, ["mails"]);
    assert_eq!(names(&store, within(None, &["slow"])).await, [""; 0]);
    let both = within(Some(event.id), &["slow", "mails"]);
    assert_eq!(names(&store, both).await, ["both", "mails", "event"]);
    assert_eq!(names(&store, within(Some(EventId::generate()), &[])).await, [""; 0]);
    let page = store.api_keys(&all(), Some(ids[3]), 2, at(5)).await.unwrap();
    assert_eq!(page.iter().map(|key| key.id).collect::<Vec<_>>(), [ids[2], ids[1]]);
    let scoped = read(&store, ids[4]).await.principal.scope;
    assert_eq!(scoped.queues, Some(vec!["mails".to_owned(), "slow".to_owned()]));
}

async fn a_key_is_changed_unless_it_is_revoked_or_preset(db: Database) {
    let store = db.store().await;
    let laptop = named("laptop", ann());
    store.insert_named_key(&laptop, at(0)).await.unwrap();
    let edit = KeyEdit { name: None, expires_at: Some(Some(at(7))) };
    assert_eq!(
        store.edit_key_as_seen(laptop.id, &edit, None, at(0)).await.unwrap(),
        KeyWritten::Done
    );
    assert_eq!(holder(&store, "laptop", 6).await.unwrap().expires_at, Some(at(7)));
    assert_eq!(holder(&store, "laptop", 7).await, None);
    let forever = KeyEdit { name: Some("desk".into()), expires_at: Some(None) };
    assert_eq!(
        store.edit_key_as_seen(laptop.id, &forever, None, at(0)).await.unwrap(),
        KeyWritten::Done
    );
    let read = read(&store, laptop.id).await;
    assert_eq!((read.name.as_str(), read.principal.expires_at), ("desk", None));
    store.preset_admin_key(Some(&KeyHash::of("preset")), at(0)).await.unwrap();
    let all = store.api_keys(&KeyFilter::default(), None, 9, at(1)).await.unwrap();
    let preset = all.iter().find(|key| key.kind == KeyKind::Preset).unwrap();
    assert_eq!(
        store.edit_key_as_seen(preset.id, &forever, None, at(0)).await.unwrap(),
        KeyWritten::NotFound
    );
    assert!(!store.end_key(preset.id, at(1)).await.unwrap());
    let hash = KeyHash::of("x");
    let rotated = store.rotate_key(preset.id, &hash, None, at(1)).await.unwrap();
    assert_eq!(rotated, KeyRotated::NotFound);
    assert!(store.end_key(laptop.id, at(1)).await.unwrap());
    assert_eq!(
        store.edit_key_as_seen(laptop.id, &forever, None, at(0)).await.unwrap(),
        KeyWritten::NotFound
    );
    assert_eq!(
        store.edit_key_as_seen(KeyId::generate(), &forever, None, at(0)).await.unwrap(),
        KeyWritten::NotFound
    );
}

async fn a_replaced_secret_works_until_its_grace_ends(db: Database) {
    let store = db.store().await;
    let laptop = named("first", ann());
    store.insert_named_key(&laptop, at(0)).await.unwrap();
    let rotate = async |secret: &str, until: Option<u64>, now: u64| {
        let hash = KeyHash::of(secret);
        store.rotate_key(laptop.id, &hash, until.map(at), at(now)).await.unwrap()
    };
    let works = async |secret: &str, now: u64| {
        let found = store.principal(&KeyHash::of(secret), at(now)).await.unwrap();
        found.map(|found| assert_eq!(found.key, Some(laptop.id))).is_some()
    };
    assert_eq!(rotate("second", Some(10), 1).await, KeyRotated::Done);
    assert!(works("first", 9).await && works("second", 9).await && !works("first", 10).await);
    assert_eq!(read(&store, laptop.id).await.former_until, Some(at(10)));
    // A rotation that is repeated because its answer was lost must not end the first secret.
    assert_eq!(rotate("third", Some(12), 2).await, KeyRotated::Done);
    assert!(works("first", 9).await && works("second", 11).await && works("third", 99).await);
    assert!(!works("second", 12).await);
    assert_eq!(rotate("fourth", None, 3).await, KeyRotated::Done);
    assert!(!works("first", 4).await && !works("second", 4).await && !works("third", 4).await);
    assert!(works("fourth", 4).await);
    assert_eq!(read(&store, laptop.id).await.former_until, None);
    for number in 0..10 {
        assert_eq!(rotate(&number.to_string(), Some(50), 20).await, KeyRotated::Done);
    }
    assert_eq!(rotate("eleventh", Some(50), 20).await, KeyRotated::TooManyFormer);
    assert!(works("9", 21).await && !works("eleventh", 21).await);
    assert_eq!(rotate("later", Some(60), 50).await, KeyRotated::Done, "the others have ended");
}

async fn former_secrets_end_with_their_key(db: Database) {
    let store = db.store().await;
    let laptop = NewKey { expires_at: Some(at(30)), ..named("first", ann()) };
    store.insert_named_key(&laptop, at(0)).await.unwrap();
    let second = KeyHash::of("second");
    store.rotate_key(laptop.id, &second, Some(at(99)), at(1)).await.unwrap();
    assert!(holder(&store, "first", 29).await.is_some());
    assert_eq!(holder(&store, "first", 30).await, None, "the key has ended");
    let late = store.rotate_key(laptop.id, &KeyHash::of("x"), None, at(30)).await.unwrap();
    assert_eq!(late, KeyRotated::NotFound);
    // The secret that was replaced names the key, too.
    assert!(store.revoke_key(&KeyHash::of("first"), at(2)).await.unwrap());
    assert_eq!(holder(&store, "first", 3).await, None);
    assert_eq!(holder(&store, "second", 3).await, None);
}

async fn a_key_is_revoked_by_its_id(db: Database) {
    let store = db.store().await;
    let event = event("ann");
    store.insert_event(&event).await.unwrap();
    let scope = Scope { event: Some(event.id), queues: None };
    let scanner = Principal { scope, ..Principal::new("ann", Role::Scanner) };
    let code = KeyHash::of("code");
    let device = |name: &str| NewDevice {
        key: named(name, scanner.clone()),
        event_id: event.id,
        gate: None::<GateId>,
        list: None,
        enrol_code: code.clone(),
        enrol_until: at(100),
    };
    let phone = device("phone");
    store.insert_device(&phone, at(0)).await.unwrap();
    assert_eq!(read(&store, phone.key.id).await.kind, KeyKind::Device);
    assert!(store.end_key(phone.key.id, at(1)).await.unwrap());
    assert!(!store.end_key(phone.key.id, at(2)).await.unwrap());
    assert_eq!(holder(&store, "phone", 3).await, None);
    assert_eq!(store.enrol_device(&code, &KeyHash::of("new"), at(4)).await.unwrap(), None);
    let ended = read(&store, phone.key.id).await;
    assert_eq!((ended.revoked_at, ended.state(at(5))), (Some(at(1)), KeyState::Revoked));
    assert!(!store.end_key(KeyId::generate(), at(1)).await.unwrap());
    // Devices share names, also when one is renamed.
    let (one, two) = (device("one"), device("two"));
    for device in [&one, &two] {
        store.insert_device(device, at(0)).await.unwrap();
        let edit = KeyEdit { name: Some("door".into()), expires_at: None };
        assert_eq!(
            store.edit_key_as_seen(device.key.id, &edit, None, at(0)).await.unwrap(),
            KeyWritten::Done
        );
    }
}

async fn uses_are_noted_and_an_older_one_changes_nothing(db: Database) {
    let store = db.store().await;
    let (one, two) = (named("one", ann()), named("two", ann()));
    for key in [&one, &two] {
        store.insert_named_key(key, at(0)).await.unwrap();
    }
    let used = |key: &NewKey, second: u64, from: Option<&str>| KeyUse {
        key: key.id,
        at: at(second),
        from: from.map(str::to_owned),
    };
    store.note_key_uses(&[]).await.unwrap();
    let gone = KeyUse { key: KeyId::generate(), at: at(1), from: None };
    let uses = [used(&one, 5, Some("10.0.0.1")), used(&two, 6, None), gone];
    store.note_key_uses(&uses).await.unwrap();
    store.note_key_uses(&[used(&one, 4, Some("10.0.0.2"))]).await.unwrap();
    let (one, two) = (read(&store, one.id).await, read(&store, two.id).await);
    assert_eq!((one.last_used_at, one.last_used_from.as_deref()), (Some(at(5)), Some("10.0.0.1")));
    assert_eq!((two.last_used_at, two.last_used_from), (Some(at(6)), None));
}

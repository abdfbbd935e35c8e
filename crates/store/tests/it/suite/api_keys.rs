//! API keys: issued, revoked, preset.

use stampede_model::{KeyHash, KeyId, Principal, Role, Scope};
use stampede_store::{NewKey, Store};

use crate::backends::Database;
use crate::suite::samples::{at, event};

on_every_backend!(
    a_key_works_until_it_is_revoked,
    a_key_has_a_scope_and_an_end,
    there_is_exactly_one_preset_key,
    the_preset_key_may_equal_an_issued_one,
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
    let ann = Principal { scope, ..Principal::new("ann", Role::Scanner) };
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

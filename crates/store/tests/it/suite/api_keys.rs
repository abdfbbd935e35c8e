//! API keys: issued, revoked, preset.

use stampede_model::{KeyHash, KeyId, Principal, Role};

use crate::backends::Database;
use crate::suite::samples::at;

on_every_backend!(
    a_key_works_until_it_is_revoked,
    there_is_exactly_one_preset_key,
    the_preset_key_may_equal_an_issued_one,
);

fn admin() -> Principal {
    Principal { user: "admin".into(), role: Role::Admin }
}

async fn a_key_works_until_it_is_revoked(db: Database) {
    let store = db.store().await;
    let ann = Principal { user: "ann".into(), role: Role::Organiser };
    let (id, hash) = (KeyId::generate(), KeyHash::of("secret"));
    assert_eq!(store.principal(&hash).await.unwrap(), None);
    store.insert_key(id, &hash, &ann, "laptop", at(0)).await.unwrap();
    assert_eq!(store.principal(&hash).await.unwrap(), Some(ann));
    assert_eq!(store.principal(&KeyHash::of("Secret")).await.unwrap(), None);
    assert!(!store.has_admin_key().await.unwrap());

    let root = KeyHash::of("root");
    store.insert_key(KeyId::generate(), &root, &admin(), "", at(0)).await.unwrap();
    assert!(store.has_admin_key().await.unwrap());
    assert!(store.revoke_key(&root, at(1)).await.unwrap());
    assert!(!store.has_admin_key().await.unwrap());

    assert!(store.revoke_key(&hash, at(1)).await.unwrap());
    assert!(!store.revoke_key(&hash, at(2)).await.unwrap());
    assert!(!store.revoke_key(&KeyHash::of("unknown"), at(2)).await.unwrap());
    assert_eq!(store.principal(&hash).await.unwrap(), None);
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
    assert_eq!(store.principal(&former).await.unwrap(), Some(admin()));
    assert!(store.has_admin_key().await.unwrap());
    store.preset_admin_key(Some(&new), at(1)).await.unwrap();
    assert_eq!(store.principal(&former).await.unwrap(), None);
    assert_eq!(store.principal(&new).await.unwrap(), Some(admin()));

    for _ in 0..2 {
        store.preset_admin_key(None, at(2)).await.unwrap();
        assert_eq!(store.principal(&new).await.unwrap(), None);
        assert!(!store.has_admin_key().await.unwrap());
    }
    store.preset_admin_key(Some(&new), at(3)).await.unwrap();
    assert_eq!(store.principal(&new).await.unwrap(), Some(admin()));
}

async fn the_preset_key_may_equal_an_issued_one(db: Database) {
    let store = db.store().await;
    let hash = KeyHash::of("secret");
    let viewer = Principal { user: "ann".into(), role: Role::Viewer };
    store.insert_key(KeyId::generate(), &hash, &viewer, "", at(0)).await.unwrap();
    store.preset_admin_key(Some(&hash), at(1)).await.unwrap();
    assert_eq!(store.principal(&hash).await.unwrap(), Some(admin()));
}

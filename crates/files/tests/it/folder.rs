//! Tests of a folder alone.

use stampede_files::{Config, Durability, Files};

use crate::storages::{Folder, Kind};

#[tokio::test]
async fn neither_a_probe_nor_a_replaced_file_leaves_a_temporary_file() {
    let (files, _guard) = Folder::open().await;
    files.probe().await.unwrap();
    files.put("a.pdf", b"first".to_vec()).await.unwrap();
    files.put("a.pdf", b"second".to_vec()).await.unwrap();
    let address = files.address("a.pdf");
    let path = address.path().unwrap();
    assert_eq!(std::fs::read(path).unwrap(), b"second", "a path that other programs can open");
    let names: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[tokio::test]
async fn a_folder_is_opened_again_with_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("new/public");
    for durability in [Durability::SyncEach, Durability::Relaxed] {
        let files = Files::open(&Config { root: root.clone(), durability }).await.unwrap();
        let former = files.get("a").await.unwrap();
        assert_eq!(former.is_some(), durability == Durability::Relaxed);
        files.put("a", vec![1]).await.unwrap();
    }
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let root = file.join("public");
    let opened = Files::open(&Config { root, durability: Durability::Relaxed }).await;
    let message = opened.err().unwrap().to_string();
    assert!(message.starts_with("cannot write to the folder "), "{message}");
    assert!(message.contains("file/public") && message.contains("PUBLIC_PATH"), "{message}");
}

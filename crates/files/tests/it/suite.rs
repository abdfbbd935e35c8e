//! The conformance suite: what every storage promises.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use stampede_files::{Error, Files};

use crate::storages::{on_every_storage, on_storage};

on_every_storage!(
    a_storage_can_be_proved_usable_and_nothing_is_left_of_it,
    a_file_comes_back_as_it_was_written,
    a_file_is_replaced_as_a_whole,
    a_missing_file_is_not_an_error,
    deleting_is_idempotent,
    a_folder_is_not_a_file,
    names_cannot_lead_out_or_have_two_spellings,
    large_and_empty_files_come_back,
    readers_beside_writers_see_one_content_whole,
    a_write_that_is_given_up_leaves_the_old_content_or_the_new,
    the_address_ends_with_the_name,
);

/// Content that shows which writer wrote it: one byte, in a length that only this byte has.
fn content_of(writer: u8) -> Vec<u8> {
    vec![writer; 10_000 + usize::from(writer) * 1_000]
}

async fn a_storage_can_be_proved_usable_and_nothing_is_left_of_it(files: Files) {
    files.probe().await.unwrap();
    let (one, two) = tokio::join!(files.probe(), files.probe());
    one.unwrap();
    two.unwrap();
}

async fn a_file_comes_back_as_it_was_written(files: Files) {
    for name in ["a", "tickets/a.pdf", "tickets/ü/билет 1.pdf", "50% off?", ".hidden"] {
        files.put(name, name.as_bytes().to_vec()).await.unwrap();
    }
    for name in ["a", "tickets/a.pdf", "tickets/ü/билет 1.pdf", "50% off?", ".hidden"] {
        assert_eq!(files.get(name).await.unwrap().unwrap(), name.as_bytes());
        assert_eq!(files.size(name).await.unwrap(), Some(name.len() as u64));
    }
}

async fn a_file_is_replaced_as_a_whole(files: Files) {
    for content in ["first", "second, which is longer", "3"] {
        files.put("tickets/a.pdf", content.into()).await.unwrap();
        assert_eq!(files.get("tickets/a.pdf").await.unwrap().unwrap(), content.as_bytes());
        assert_eq!(files.size("tickets/a.pdf").await.unwrap(), Some(content.len() as u64));
    }
}

async fn a_missing_file_is_not_an_error(files: Files) {
    for name in ["a", "no/such/folder/a"] {
        assert_eq!(files.get(name).await.unwrap(), None);
        assert_eq!(files.size(name).await.unwrap(), None);
    }
}

async fn deleting_is_idempotent(files: Files) {
    files.put("tickets/a", vec![1]).await.unwrap();
    files.put("tickets/b", vec![2]).await.unwrap();
    for _ in 0..2 {
        files.delete("tickets/a").await.unwrap();
        assert_eq!(files.get("tickets/a").await.unwrap(), None);
    }
    files.delete("no/such/folder/a").await.unwrap();
    assert_eq!(files.get("tickets/b").await.unwrap().unwrap(), [2]);
    files.put("tickets/a", vec![3]).await.unwrap();
    assert_eq!(files.get("tickets/a").await.unwrap().unwrap(), [3]);
}

async fn a_folder_is_not_a_file(files: Files) {
    files.put("tickets/a.pdf", vec![1]).await.unwrap();
    assert_eq!(files.get("tickets").await.unwrap(), None);
    assert_eq!(files.size("tickets").await.unwrap(), None);
}

async fn names_cannot_lead_out_or_have_two_spellings(files: Files) {
    let long_segment = "x".repeat(201);
    let long_name = ["y".repeat(99).as_str(); 10].join("/");
    for name in [
        "",
        "/",
        ".",
        "..",
        "../evil",
        "a/../../evil",
        "tickets/..",
        "./a",
        "a/./b",
        "a//b",
        "/etc/passwd",
        "a/",
        "a\\..\\b",
        "a\0b",
        "a\nb",
        "a#1",
        long_segment.as_str(),
        long_name.as_str(),
    ] {
        assert!(matches!(files.put(name, vec![1]).await, Err(Error::Name(_))), "put {name:?}");
        assert!(matches!(files.get(name).await, Err(Error::Name(_))), "get {name:?}");
        assert!(matches!(files.size(name).await, Err(Error::Name(_))), "size {name:?}");
        assert!(matches!(files.delete(name).await, Err(Error::Name(_))), "delete {name:?}");
    }
}

async fn large_and_empty_files_come_back(files: Files) {
    let large: Vec<u8> = (0..=250u8).cycle().take(32 << 20).collect();
    files.put("large.zip", large.clone()).await.unwrap();
    assert_eq!(files.size("large.zip").await.unwrap(), Some(32 << 20));
    assert!(files.get("large.zip").await.unwrap().unwrap() == large);
    files.put("empty", Vec::new()).await.unwrap();
    assert_eq!(files.get("empty").await.unwrap().unwrap(), []);
    assert_eq!(files.size("empty").await.unwrap(), Some(0));
}

async fn readers_beside_writers_see_one_content_whole(files: Files) {
    let name = "tickets/contended.pdf";
    files.put(name, content_of(0)).await.unwrap();
    let writers = (1..=6).map(|writer| {
        let files = files.clone();
        tokio::spawn(async move {
            for _ in 0..20 {
                files.put(name, content_of(writer)).await.unwrap();
            }
        })
    });
    let readers = (0..4).map(|_| {
        let files = files.clone();
        tokio::spawn(async move {
            for _ in 0..60 {
                let content = files.get(name).await.unwrap().unwrap();
                assert!(content == content_of(content[0]), "a mixture of {} bytes", content.len());
            }
        })
    });
    for task in writers.chain(readers).collect::<Vec<_>>() {
        task.await.unwrap();
    }
}

/// Drops the future after so many polls, as a server does when its client hangs up.
async fn given_up_after<F: Future>(polls: usize, work: F) -> Option<F::Output> {
    let mut work = pin!(work);
    let mut left = polls;
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

async fn a_write_that_is_given_up_leaves_the_old_content_or_the_new(files: Files) {
    for polls in 0..4 {
        let name = format!("tickets/{polls}.pdf");
        files.put(&name, content_of(1)).await.unwrap();
        given_up_after(polls, files.put(&name, content_of(2))).await;
        let content = files.get(&name).await.unwrap().unwrap();
        assert!(content == content_of(content[0]), "a mixture of {} bytes", content.len());
        files.put(&name, content_of(3)).await.unwrap();
    }
}

async fn the_address_ends_with_the_name(files: Files) {
    let address = files.address("tickets/a.pdf").to_string();
    assert!(address.ends_with("/public/tickets/a.pdf"), "{address}");
}

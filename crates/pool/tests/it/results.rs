//! Finished answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use stampede_pool::{Found, NoAnswer, Priority, Results};

use crate::{Held, pool};

type Cache = Results<&'static str, Arc<[u8]>>;

fn cache(bytes: u64) -> Cache {
    Results::new(bytes, Duration::from_secs(3_600), |value: &Arc<[u8]>| value.len())
}

fn answer() -> Arc<[u8]> {
    vec![7; 10].into()
}

#[tokio::test]
async fn the_same_key_from_50_callers_is_computed_once() {
    let (pool, cache, drawn) = (pool(2, 100).await, cache(1 << 20), AtomicUsize::new(0));
    let drawn = Arc::new(drawn);
    let held = [Held::start(&pool), Held::start(&pool)];
    let callers = (0..50).map(|_| {
        let (pool, cache, drawn) = (pool.clone(), cache.clone(), drawn.clone());
        let make = async move {
            let draw = move |_: &mut ()| {
                drawn.fetch_add(1, Ordering::SeqCst);
                answer()
            };
            pool.submit(Priority::Normal, draw).unwrap().await
        };
        async move { cache.get_or_make("hello", make).await }
    });
    let mut callers = Box::pin(join_all(callers));
    assert!((&mut callers).now_or_never().is_none());
    assert_eq!(pool.stats().queue_size, 1);
    for held in held {
        held.end().await;
    }
    let found: Vec<_> = callers.await.into_iter().map(Result::unwrap).collect();
    let made = found.iter().filter(|found| matches!(found, Found::Made(_))).count();
    assert_eq!((found.len(), made, drawn.load(Ordering::SeqCst)), (50, 1, 1));
    assert!(found.into_iter().all(|found| found.into_value() == answer()));
    assert_eq!(cache.get(&"hello").await, Some(answer()));
}

#[tokio::test]
async fn when_the_caller_who_makes_an_answer_goes_away_another_goes_on() {
    let (pool, cache) = (pool(1, 10).await, cache(1 << 20));
    let held = Held::start(&pool);
    let caller = || {
        let (pool, cache) = (pool.clone(), cache.clone());
        let make = async move { pool.submit(Priority::Normal, |()| answer()).unwrap().await };
        Box::pin(async move { cache.get_or_make("hello", make).await })
    };
    let (mut first, mut second) = (caller(), caller());
    assert!((&mut first).now_or_never().is_none() && (&mut second).now_or_never().is_none());
    drop(first);
    assert_eq!(pool.stats().queue_size, 0, "a client that hangs up frees its place");
    assert!((&mut second).now_or_never().is_none());
    assert_eq!(pool.stats().queue_size, 1);
    held.end().await;
    assert_eq!(second.await.unwrap(), Found::Made(answer()));
}

#[tokio::test]
async fn errors_are_told_to_all_who_wait_and_not_kept() {
    let (pool, cache) = (pool(1, 10).await, cache(1 << 20));
    let held = Held::start(&pool);
    let mut callers = Box::pin(join_all((0..5).map(|_| {
        let (pool, cache) = (pool.clone(), cache.clone());
        async move {
            let fails = pool.submit::<Arc<[u8]>, _>(Priority::Normal, |()| panic!("no"));
            let make = async move { fails.unwrap().await };
            cache.get_or_make("bad", make).await
        }
    })));
    assert!((&mut callers).now_or_never().is_none());
    held.end().await;
    for found in callers.await {
        assert_eq!(*found.unwrap_err(), NoAnswer::Panicked("no".to_owned()));
    }
    assert_eq!(cache.get(&"bad").await, None);
    let made = cache.get_or_make("bad", async { Ok::<_, NoAnswer>(answer()) }).await;
    assert_eq!(made.unwrap(), Found::Made(answer()));
}

#[tokio::test]
async fn answers_are_kept_by_their_bytes() {
    let cache: Results<u32, Arc<[u8]>> =
        Results::new(1_000, Duration::from_secs(3_600), |value: &Arc<[u8]>| value.len());
    for key in 0..1_000 {
        cache.keep(key, answer()).await;
    }
    let bytes = cache.bytes().await;
    assert!((900..=1_000).contains(&bytes), "{bytes}");
    cache.keep(5_000, vec![0; 2_000].into()).await;
    assert!(cache.bytes().await <= 1_000);
    assert_eq!(cache.get(&5_000).await, None, "it is larger than all there is");
}

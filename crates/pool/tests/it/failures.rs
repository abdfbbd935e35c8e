//! Tasks that panic.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stampede_pool::{NoAnswer, Pool, Priority};

use crate::{Held, config, pool};

/// A pool whose threads number their states.
fn numbered(threads: usize) -> (Pool<usize>, Arc<AtomicUsize>) {
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    let init = move || count.fetch_add(1, Ordering::SeqCst);
    (Pool::start(&config(threads, 2_000), init).unwrap(), made)
}

#[tokio::test]
async fn a_task_that_panics_every_time_fails_alone_among_1_000() {
    let (pool, made) = numbered(2);
    let tasks: Vec<_> = (0..1_000)
        .map(|n| {
            move |_: &mut usize| {
                assert!(n % 100 != 50, "text {n} cannot be drawn");
                n
            }
        })
        .collect();
    let answers = pool.submit_batch(Priority::Normal, tasks).unwrap().all().await;
    for (n, answer) in answers.into_iter().enumerate() {
        match n % 100 {
            50 => assert_eq!(answer, Err(NoAnswer::Panicked(format!("text {n} cannot be drawn")))),
            _ => assert_eq!(answer, Ok(n)),
        }
    }
    pool.ready().await.unwrap();
    let stats = pool.stats();
    assert_eq!((stats.tasks_completed, stats.tasks_failed), (990, 10));
    // All threads are there: both can be busy at the same time.
    let both = [Held::start(&pool), Held::start(&pool)];
    assert_eq!(made.load(Ordering::SeqCst), 12, "2 at the start, one after each panic");
    for held in both {
        held.end().await;
    }
}

#[tokio::test]
async fn the_state_of_a_thread_is_thrown_away_after_a_panic() {
    let (pool, _) = numbered(1);
    let state = |pool: &Pool<usize>| pool.submit(Priority::Normal, |state| *state).unwrap();
    assert_eq!((state(&pool).await, state(&pool).await), (Ok(0), Ok(0)));
    let damage = |state: &mut usize| {
        *state = 99;
        panic!("half way")
    };
    let damaged = pool.submit::<(), _>(Priority::Normal, damage).unwrap();
    assert_eq!(damaged.await, Err(NoAnswer::Panicked("half way".to_owned())));
    assert_eq!(state(&pool).await, Ok(1));
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[tokio::test]
async fn panics_of_destructors_end_no_thread() {
    let pool = Pool::start(&config(1, 10), || Bomb).unwrap();
    // What a panic carries, the state and an answer that nobody takes: all panic when they are dropped.
    let carried = pool.submit::<(), _>(Priority::Normal, |_| std::panic::panic_any(Bomb)).unwrap();
    assert_eq!(carried.await, Err(NoAnswer::Panicked("without a message".to_owned())));
    let held = Held::start(&pool);
    let Held { release, ticket } = held;
    drop(ticket);
    let abandoned = pool.submit(Priority::Normal, |_| 1).unwrap();
    release.send(()).unwrap();
    assert_eq!(abandoned.await, Ok(1));
    let (started, running) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let task = move |_: &mut Bomb| {
        started.send(()).unwrap();
        let _ = released.recv();
        Bomb
    };
    let ticket = pool.submit(Priority::Normal, task).unwrap();
    running.recv().unwrap();
    drop(ticket);
    release.send(()).unwrap();
    assert_eq!(pool.submit(Priority::Normal, |_| 2).unwrap().await, Ok(2));
}

#[tokio::test]
async fn a_task_that_returns_an_error_has_not_failed_for_the_pool() {
    let pool = pool(1, 0).await;
    let ticket = pool.submit(Priority::Normal, |()| Err::<(), _>("no glyph")).unwrap();
    assert_eq!(ticket.await, Ok(Err("no glyph")));
    assert_eq!((pool.stats().tasks_completed, pool.stats().tasks_failed), (1, 0));
}

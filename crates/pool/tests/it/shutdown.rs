//! The end of a pool.

use std::sync::Arc;
use std::time::Duration;

use stampede_pool::{Left, NoAnswer, Priority, Refused};

use crate::{Held, pool};

/// Longer than any test runs.
const LONG: Duration = Duration::from_secs(600);

#[tokio::test]
async fn waiting_tasks_are_answered_and_running_ones_end() {
    let pool = pool(1, 10).await;
    let held = Held::start(&pool);
    let waiting: Vec<_> =
        (0..10).map(|n| pool.submit(Priority::Vip, move |()| n).unwrap()).collect();
    assert_eq!(pool.shutdown(Duration::ZERO), Left(1), "the deadline has come");
    for ticket in waiting {
        assert_eq!(ticket.await, Err(NoAnswer::Closed));
    }
    assert_eq!(pool.submit(Priority::Vip, |()| ()).unwrap_err(), Refused::Closed);
    let none: Vec<fn(&mut ())> = Vec::new();
    assert!(pool.submit_batch(Priority::Vip, none).is_err());
    assert_eq!(pool.ready().await, Err(NoAnswer::Closed));
    // Its answer arrives all the same.
    held.end().await;
    assert_eq!(pool.shutdown(LONG), Left(0));
    assert_eq!(pool.shutdown(Duration::ZERO), Left(0), "twice is once");
    let stats = pool.stats();
    assert_eq!((stats.tasks_completed, stats.queue_size, stats.busy_workers), (1, 0, 0));
    assert_eq!(stats.tasks_refused, 0, "it was not for lack of room");
}

#[tokio::test]
async fn two_shutdowns_at_the_same_time_both_wait_for_the_end() {
    let pool = pool(2, 10).await;
    let held = Held::start(&pool);
    let ends = [pool.clone(), pool.clone()]
        .map(|pool| tokio::task::spawn_blocking(move || pool.shutdown(LONG)));
    held.end().await;
    for end in ends {
        assert_eq!(end.await.unwrap(), Left(0));
    }
}

#[tokio::test]
async fn a_pool_that_nobody_holds_is_closed_and_its_states_are_dropped() {
    let witness = Arc::new(());
    let (ended, end) = std::sync::mpsc::channel::<()>();
    let state = (witness.clone(), ended);
    let pool = stampede_pool::Pool::start(&crate::config(1, 10), move || state.clone()).unwrap();
    let held = Held::start(&pool);
    let waiting = pool.submit(Priority::Normal, |_| ()).unwrap();
    drop(pool.clone());
    assert_eq!(pool.stats().queue_size, 1, "another holds it");
    drop(pool);
    assert_eq!(waiting.await, Err(NoAnswer::Closed));
    held.end().await;
    // The sender in the state and the one in `init` are gone.
    assert!(end.recv().is_err());
    assert_eq!(Arc::strong_count(&witness), 1);
}

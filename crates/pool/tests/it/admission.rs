//! Which tasks are accepted.

use std::sync::Arc;
use std::time::Duration;

use stampede_pool::{Priority, Refused, Ticket};

use crate::{Held, pool};

fn full(queued: usize) -> Refused {
    Refused::Full { queued, retry_after: Duration::from_secs(1) }
}

#[tokio::test]
async fn of_101_tasks_at_a_queue_of_100_exactly_one_is_refused() {
    let pool = pool(1, 100).await;
    let held = Held::start(&pool);
    let submitted: Vec<_> = (0..101).map(|n| pool.submit(Priority::Normal, move |()| n)).collect();
    let (accepted, refused): (Vec<_>, Vec<_>) = submitted.into_iter().partition(Result::is_ok);
    let refused: Vec<Refused> = refused.into_iter().filter_map(Result::err).collect();
    assert_eq!(refused, [full(100)]);
    let stats = pool.stats();
    assert_eq!((stats.queue_size, stats.busy_workers, stats.tasks_refused), (100, 1, 1));
    held.end().await;
    for (n, ticket) in accepted.into_iter().enumerate() {
        assert_eq!(ticket.unwrap().await, Ok(n));
    }
    let stats = pool.stats();
    assert_eq!((stats.queue_size, stats.busy_workers, stats.idle_workers), (0, 0, 1));
    assert_eq!((stats.tasks_completed, stats.tasks_failed, stats.tasks_refused), (101, 0, 1));
    assert_eq!((stats.total_workers, stats.wait.count, stats.run.count), (1, 101, 101));
}

#[tokio::test]
async fn a_queue_of_0_accepts_a_task_only_if_a_thread_is_free() {
    let pool = pool(2, 0).await;
    let first = Held::start(&pool);
    let second = Held::start(&pool);
    assert_eq!(pool.submit(Priority::Vip, |()| ()).unwrap_err(), full(0));
    second.end().await;
    // Its thread is free as soon as its answer has arrived.
    for n in 0..1_000 {
        assert_eq!(pool.submit(Priority::Normal, move |()| n).unwrap().await, Ok(n));
    }
    first.end().await;
}

#[tokio::test]
async fn a_batch_takes_room_for_all_of_its_tasks_or_for_none() {
    let pool = pool(1, 10).await;
    let held = Held::start(&pool);
    let tasks = |count: usize| (0..count).map(|n| move |_: &mut ()| n).collect::<Vec<_>>();
    let eight = pool.submit_batch(Priority::Normal, tasks(8)).unwrap();
    assert_eq!(pool.submit_batch(Priority::Vip, tasks(3)).unwrap_err(), full(8));
    let two = pool.submit_batch(Priority::Normal, tasks(2)).unwrap();
    assert_eq!(pool.submit_batch(Priority::Vip, tasks(1)).unwrap_err(), full(10));
    assert_eq!(pool.submit_batch(Priority::Vip, tasks(0)).unwrap().all().await, []);
    let too_many = pool.submit_batch(Priority::Normal, tasks(12)).unwrap_err();
    assert_eq!(too_many, Refused::TooMany { most: 11 }, "waiting longer would not help");
    assert_eq!(pool.stats().tasks_refused, 4);
    held.end().await;
    assert_eq!(eight.all().await, (0..8).map(Ok).collect::<Vec<_>>());
    assert_eq!(two.all().await, [Ok(0), Ok(1)]);
    // Nothing waits: the free thread counts as room.
    assert_eq!(pool.submit_batch(Priority::Normal, tasks(11)).unwrap().all().await.len(), 11);
}

#[tokio::test]
async fn a_dropped_ticket_removes_its_task_while_it_waits() {
    let pool = pool(1, 2).await;
    let held = Held::start(&pool);
    let witness = Arc::new(());
    let [kept, dropped] = [1, 2].map(|n| {
        let witness = witness.clone();
        pool.submit(Priority::Normal, move |()| (n, drop(witness)).0).unwrap()
    });
    assert_eq!((Arc::strong_count(&witness), pool.stats().queue_size), (3, 2));
    drop(dropped);
    assert_eq!((Arc::strong_count(&witness), pool.stats().queue_size), (2, 1));
    let next = pool.submit(Priority::Normal, |()| 3).unwrap();
    held.end().await;
    assert_eq!((kept.await, next.await), (Ok(1), Ok(3)));
    assert_eq!(pool.stats().tasks_completed, 3);
}

#[tokio::test]
async fn an_abandoned_future_frees_its_place_and_a_running_task_goes_on() {
    let pool = pool(1, 1).await;
    let held = Held::start(&pool);
    let ticket: Ticket<()> = pool.submit(Priority::Normal, |()| ()).unwrap();
    let asker = tokio::spawn(ticket);
    asker.abort();
    assert!(asker.await.unwrap_err().is_cancelled());
    assert_eq!(pool.stats().queue_size, 0);
    // The caller of the running task goes away; the next task runs after it.
    let Held { release, ticket } = held;
    drop(ticket);
    assert_eq!(pool.stats().busy_workers, 1);
    let next = pool.submit(Priority::Normal, |()| ()).unwrap();
    release.send(()).unwrap();
    next.await.unwrap();
    assert_eq!(pool.stats().tasks_completed, 2);
}

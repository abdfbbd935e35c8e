//! Which of the waiting tasks is next. How tasks rise is tested in `src/queue.rs`, at moments that the test chooses.

use std::sync::mpsc;
use std::time::Duration;

use stampede_pool::{Config, Pool, Priority};

use crate::{Held, config, pool};

#[tokio::test]
async fn a_vip_task_runs_before_100_that_wait() {
    let pool = pool(1, 200).await;
    let held = Held::start(&pool);
    let (ran, order) = mpsc::channel();
    let mut tickets = Vec::new();
    for (priority, count) in [(Priority::Batch, 50), (Priority::Normal, 50), (Priority::Vip, 2)] {
        for n in 0..count {
            let ran = ran.clone();
            let task = move |_: &mut ()| ran.send((priority, n)).unwrap();
            tickets.push(pool.submit(priority, task).unwrap());
        }
    }
    held.end().await;
    for ticket in tickets {
        ticket.await.unwrap();
    }
    let order: Vec<_> = order.try_iter().collect();
    let line = |priority, count| (0..count).map(move |n| (priority, n));
    let expected =
        line(Priority::Vip, 2).chain(line(Priority::Normal, 50)).chain(line(Priority::Batch, 50));
    assert_eq!(order, expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn a_pool_lets_waiting_tasks_rise() {
    // With the shortest step, every task that waits is as urgent as any other: first in, first out.
    let config = Config { ageing: Duration::from_nanos(1), ..config(1, 10) };
    let pool = Pool::start(&config, || ()).unwrap();
    let held = Held::start(&pool);
    let (ran, order) = mpsc::channel();
    let tickets = [Priority::Batch, Priority::Normal, Priority::Vip].map(|priority| {
        let ran = ran.clone();
        pool.submit(priority, move |()| ran.send(priority).unwrap()).unwrap()
    });
    held.end().await;
    for ticket in tickets {
        ticket.await.unwrap();
    }
    let order: Vec<_> = order.try_iter().collect();
    assert_eq!(order, [Priority::Batch, Priority::Normal, Priority::Vip]);
}

#[tokio::test]
async fn all_threads_work_at_the_same_time() {
    let pool = pool(4, 0).await;
    let held: Vec<_> = (0..4).map(|_| Held::start(&pool)).collect();
    assert_eq!(pool.stats().busy_workers, 4);
    assert!(!pool.is_idle());
    for held in held {
        held.end().await;
    }
    assert!(pool.is_idle());
}

//! States that threads make before they take work.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use futures::FutureExt;
use stampede_pool::{NoAnswer, Pool, Priority};

use crate::{Held, config};

#[tokio::test]
async fn ready_waits_until_every_thread_has_made_its_state() {
    let (go, gate) = mpsc::channel::<()>();
    let (gate, made) = (std::sync::Mutex::new(gate), Arc::new(AtomicUsize::new(0)));
    let count = made.clone();
    let init = move || {
        gate.lock().unwrap().recv().unwrap();
        count.fetch_add(1, Ordering::SeqCst);
    };
    let pool = Pool::start(&config(3, 5), init).unwrap();
    let mut ready = Box::pin(pool.ready());
    assert!((&mut ready).now_or_never().is_none());
    assert!(!pool.is_idle());
    go.send(()).unwrap();
    go.send(()).unwrap();
    // The warm threads take work already.
    pool.submit(Priority::Normal, |()| ()).unwrap().await.unwrap();
    assert!((&mut ready).now_or_never().is_none());
    go.send(()).unwrap();
    assert_eq!(ready.await, Ok(()));
    assert_eq!(made.load(Ordering::SeqCst), 3);
    assert_eq!(pool.ready().await, Ok(()));
}

#[tokio::test]
async fn tasks_that_are_submitted_before_the_warm_up_ends_wait_in_the_queue() {
    let (go, gate) = mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let pool = Pool::start(&config(1, 1), move || gate.lock().unwrap().recv().unwrap()).unwrap();
    let ticket = pool.submit(Priority::Normal, |()| 1).unwrap();
    assert!(pool.submit(Priority::Normal, |()| 2).is_err(), "the thread is not free yet");
    go.send(()).unwrap();
    assert_eq!(ticket.await, Ok(1));
}

#[tokio::test]
async fn a_failed_warm_up_is_told_and_tried_again_for_each_task() {
    let (broken, tries) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let (is_broken, count) = (broken.clone(), tries.clone());
    let init = move || {
        count.fetch_add(1, Ordering::SeqCst);
        assert!(!is_broken.load(Ordering::SeqCst), "no font");
    };
    let pool = Pool::start(&config(1, 5), init).unwrap();
    let not_ready = NoAnswer::NotReady("no font".to_owned());
    assert_eq!(pool.ready().await, Err(not_ready.clone()));
    assert_eq!(pool.submit(Priority::Normal, |()| 1).unwrap().await, Err(not_ready.clone()));
    broken.store(false, Ordering::SeqCst);
    // The thread may have tried again before the font was there; a task more, and it is well.
    let _ = pool.submit(Priority::Normal, |()| 2).unwrap().await;
    assert_eq!(pool.submit(Priority::Normal, |()| 3).unwrap().await, Ok(3));
    assert_eq!(pool.ready().await, Ok(()));
    Held::start(&pool).end().await;
    assert!((2..=3).contains(&tries.load(Ordering::SeqCst)));
}

//! Looking into queues.

use stampede_broker::State;
use stampede_model::JobSpec;

use crate::stage::{Stage, job};

#[tokio::test]
async fn jobs_that_wait_are_listed_with_and_without_a_priority() {
    let stage = Stage::start().await;
    let prioritized = (0..3).map(|n| JobSpec { priority: 5, ..job(&format!("late-{n}")) });
    let plain = (0..3).map(|n| JobSpec { priority: 0, ..job(&format!("soon-{n}")) });
    stage.enqueue(&plain.chain(prioritized).collect::<Vec<_>>()).await;
    let listed = async |skip, count| {
        let jobs = stage.queue.jobs_in(&State::WAITING, skip, count).await.unwrap();
        jobs.into_iter().map(|job| (job.id, job.state)).collect::<Vec<_>>()
    };
    let all = listed(0, 100).await;
    assert_eq!(all.len(), 6, "{all:?}");
    assert!(all[..3].iter().all(|(_, state)| *state == State::Waiting), "{all:?}");
    assert!(all[3..].iter().all(|(_, state)| *state == State::Prioritized), "{all:?}");
    for skip in 0..=6 {
        for count in 0..=6 {
            let end = (skip + count).min(6);
            assert_eq!(listed(skip, count).await, all[skip..end], "{skip} {count}");
        }
    }
    let found = stage.queue.search(&State::WAITING, "late", 0, 2).await.unwrap();
    assert_eq!(found.jobs.len(), 2);
    let rest = stage.queue.search(&State::WAITING, "late", found.next.unwrap(), 9).await.unwrap();
    assert_eq!((rest.jobs.len(), rest.next), (1, None));
}

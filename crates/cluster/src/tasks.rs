//! The tasks of a process, which run until they are told to stop.

use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// Waits until all tasks have ended. If one panics, `stop` is cancelled, so that the others end in good order;
/// the first panic is returned.
pub async fn all_ended(tasks: &mut JoinSet<()>, stop: &CancellationToken) -> Result<(), JoinError> {
    let mut outcome = Ok(());
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "a task of this process panicked; stopping");
            stop.cancel();
            outcome = outcome.and(Err(error));
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[tokio::test]
    async fn when_a_task_panics_the_others_are_told_to_stop_and_end_in_good_order() {
        let (stop, orderly) = (CancellationToken::new(), Arc::new(AtomicBool::new(false)));
        let mut tasks = JoinSet::new();
        let (told, ended) = (stop.clone(), orderly.clone());
        tasks.spawn(async move {
            told.cancelled().await;
            tokio::task::yield_now().await;
            ended.store(true, Ordering::Relaxed);
        });
        tasks.spawn(async { panic!("on purpose") });
        assert!(all_ended(&mut tasks, &stop).await.is_err_and(|error| error.is_panic()));
        assert!(orderly.load(Ordering::Relaxed));
    }
}

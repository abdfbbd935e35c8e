//! Parts of a process that run until they are told to stop.

use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// Waits until all parts have ended. If one panics, all are told to stop, and may end in good order;
/// returns the first that did.
pub async fn all_ended(parts: &mut JoinSet<()>, stop: &CancellationToken) -> Result<(), JoinError> {
    let mut outcome = Ok(());
    while let Some(ended) = parts.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "a part of this process ended in an unexpected way; stopping");
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
    async fn when_a_part_panics_the_others_are_told_to_stop_and_end_in_good_order() {
        let (stop, orderly) = (CancellationToken::new(), Arc::new(AtomicBool::new(false)));
        let mut parts = JoinSet::new();
        let (told, ended) = (stop.clone(), orderly.clone());
        parts.spawn(async move {
            told.cancelled().await;
            tokio::task::yield_now().await;
            ended.store(true, Ordering::Relaxed);
        });
        parts.spawn(async { panic!("on purpose") });
        assert!(all_ended(&mut parts, &stop).await.is_err_and(|error| error.is_panic()));
        assert!(orderly.load(Ordering::Relaxed));
    }
}

//! Waiting for something to become true: the only place in the tests that waits by the clock.

use std::fmt::Display;
use std::panic::Location;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The first pause between two tries; each next one is longer.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// What a try may answer: a value, or (perhaps with a reason) not yet.
pub trait Outcome {
    /// What is waited for.
    type Value;

    /// The value, or why there is none yet.
    fn into_result(self) -> Result<Self::Value, String>;
}

impl<T> Outcome for Option<T> {
    type Value = T;

    fn into_result(self) -> Result<T, String> {
        self.ok_or_else(|| "nothing yet".to_owned())
    }
}

impl<T, E: Display> Outcome for Result<T, E> {
    type Value = T;

    fn into_result(self) -> Result<T, String> {
        self.map_err(|error| error.to_string())
    }
}

/// Tries again and again until there is a value; panics at the deadline with the last reason.
#[track_caller]
pub fn eventually<F, Fut>(
    deadline: Duration,
    mut attempt: F,
) -> impl Future<Output = <Fut::Output as Outcome>::Value>
where
    F: FnMut() -> Fut,
    Fut: Future<Output: Outcome>,
{
    let caller = Location::caller();
    async move {
        let give_up = Instant::now() + deadline;
        let mut pause = FIRST_PAUSE;
        loop {
            match attempt().await.into_result() {
                Ok(value) => return value,
                Err(reason) if Instant::now() >= give_up => {
                    panic!("{caller}: not within {deadline:?}: {reason}")
                }
                Err(_) => sleep(pause).await,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_value_ends_the_waiting() {
        let mut tries = 0;
        let value = eventually(Duration::from_secs(5), || {
            tries += 1;
            let answer = (tries == 3).then_some(tries);
            async move { answer }
        });
        assert_eq!(value.await, 3);
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "not within 5s: still 2 jobs")]
    async fn the_deadline_tells_the_last_reason() {
        eventually(Duration::from_secs(5), || async { Err::<(), _>("still 2 jobs") }).await;
    }
}

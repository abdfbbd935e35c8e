//! The loop of a thread.

use std::sync::Arc;
use std::time::Instant;

use crate::NoAnswer;
use crate::shared::Shared;
use crate::task::{Ran, guarded};

/// Makes the state of a thread.
pub(crate) type Init<S> = Arc<dyn Fn() -> S + Send + Sync>;

/// Runs tasks until the pool is closed.
pub(crate) fn serve<S: 'static>(shared: &Shared<S>, init: &Init<S>) {
    let mut state = warm_up(shared, init, true);
    while let Some(task) = shared.next() {
        let begun = Instant::now();
        let ran = match &mut state {
            Ok(state) => task.run(state),
            Err(reason) => {
                let reason = NoAnswer::NotReady(reason.clone());
                Ran { panicked: true, tell: Box::new(move || task.refuse(reason)) }
            }
        };
        shared.ran(begun.elapsed(), ran.panicked);
        // An answer that nobody takes is dropped here, and may panic.
        let _ = guarded(ran.tell);
        if ran.panicked {
            // The state may be damaged, even for its destructor.
            let _ = guarded(move || drop(state));
            state = warm_up(shared, init, false);
        }
    }
    let _ = guarded(move || drop(state));
    shared.gone(1);
}

/// The state of a thread, or why there is none.
fn warm_up<S: 'static>(shared: &Shared<S>, init: &Init<S>, is_first: bool) -> Result<S, String> {
    let state = guarded(|| init());
    shared.warmed(is_first, state.as_ref().err().cloned());
    state
}

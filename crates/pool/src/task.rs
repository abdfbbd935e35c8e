//! A task with the way to its caller.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::oneshot;

use crate::NoAnswer;

/// How a task ended, and how its caller is told. The caller is told after the pool has counted the task, so that a caller who
/// submits the next task at once finds the thread free.
pub(crate) struct Ran {
    /// Whether it panicked: the state of its thread cannot be trusted any more.
    pub(crate) panicked: bool,
    /// Tells the caller.
    pub(crate) tell: Box<dyn FnOnce() + Send>,
}

/// A task without its types.
pub(crate) trait Task<S>: Send {
    /// Runs the task.
    fn run(self: Box<Self>, state: &mut S) -> Ran;
    /// Tells the caller that the task will not run.
    fn refuse(self: Box<Self>, reason: NoAnswer);
}

/// A closure and where its answer goes.
pub(crate) struct Closure<F, T> {
    pub(crate) work: F,
    pub(crate) answer: oneshot::Sender<Result<T, NoAnswer>>,
}

impl<S, F, T> Task<S> for Closure<F, T>
where
    F: FnOnce(&mut S) -> T + Send,
    T: Send + 'static,
{
    fn run(self: Box<Self>, state: &mut S) -> Ran {
        let Self { work, answer } = *self;
        let result = guarded(|| work(state)).map_err(NoAnswer::Panicked);
        let panicked = result.is_err();
        // An answer that nobody awaits any more is dropped.
        Ran { panicked, tell: Box::new(move || drop(answer.send(result))) }
    }

    fn refuse(self: Box<Self>, reason: NoAnswer) {
        let Self { work, answer } = *self;
        drop(answer.send(Err(reason)));
        drop(work);
    }
}

/// Runs a function; a panic becomes its message.
pub(crate) fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let message = message(&*panic);
        // What a panic carries may panic again when it is dropped.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(panic)));
        message
    })
}

fn message(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        return (*text).to_owned();
    }
    panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "without a message".to_owned())
}

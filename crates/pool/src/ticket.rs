//! The caller's end of a submission.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::NoAnswer;
use crate::queue::Place;

/// Takes a task out of the queue.
pub(crate) trait Withdraw: Send + Sync {
    /// Does nothing if the task does not wait any more.
    fn withdraw(&self, place: Place);
}

/// The answer of a task, to be awaited. Dropping a ticket removes its task while it waits; a running task goes on, and its
/// answer is thrown away.
#[must_use = "a task whose ticket is dropped is removed from the queue"]
pub struct Ticket<T> {
    answer: oneshot::Receiver<Result<T, NoAnswer>>,
    /// `None` when the answer has arrived.
    queued: Option<(Arc<dyn Withdraw>, Place)>,
}

impl<T> Ticket<T> {
    pub(crate) fn new(
        answer: oneshot::Receiver<Result<T, NoAnswer>>,
        queue: Arc<dyn Withdraw>,
        place: Place,
    ) -> Self {
        Self { answer, queued: Some((queue, place)) }
    }
}

impl<T> Future for Ticket<T> {
    type Output = Result<T, NoAnswer>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = std::task::ready!(Pin::new(&mut self.answer).poll(context));
        self.queued = None;
        // A task is dropped without an answer only when its pool is.
        Poll::Ready(answer.unwrap_or(Err(NoAnswer::Closed)))
    }
}

impl<T> Drop for Ticket<T> {
    fn drop(&mut self) {
        if let Some((queue, place)) = self.queued.take() {
            queue.withdraw(place);
        }
    }
}

impl<T> std::fmt::Debug for Ticket<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket")
            .field("place", &self.queued.as_ref().map(|(_, place)| place))
            .finish()
    }
}

/// The answers of several tasks that were accepted together.
#[derive(Debug)]
#[must_use = "tasks whose tickets are dropped are removed from the queue"]
pub struct Batch<T> {
    pub(crate) tickets: Vec<Ticket<T>>,
}

impl<T> Batch<T> {
    /// All answers, in the order of the tasks. One that fails leaves the others alone.
    pub async fn all(self) -> Vec<Result<T, NoAnswer>> {
        let mut answers = Vec::with_capacity(self.tickets.len());
        for ticket in self.tickets {
            answers.push(ticket.await);
        }
        answers
    }

    /// A ticket for each task, in the order of the tasks.
    pub fn into_tickets(self) -> Vec<Ticket<T>> {
        self.tickets
    }
}

//! Group commits: claims, and results, that arrive at the same time share one transaction, because a synced commit costs the
//! same for one row as for a hundred.
//!
//! There is no timer. While one group is committed, newcomers queue up, and the next group takes all of them: a quiet server
//! answers at once, a busy one in large groups.

use std::pin::Pin;
use std::sync::Arc;

use stampede_store::Error;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Most rows of one group.
const MAX_GROUP: usize = 256;

type Answer<O> = Result<O, Arc<Error>>;
/// Commits a group; the answers are in its order.
type Commit<I, O> =
    dyn Fn(Vec<I>) -> Pin<Box<dyn Future<Output = Result<Vec<O>, Error>> + Send>> + Send + Sync;

struct Waiting<I, O> {
    row: I,
    done: oneshot::Sender<Answer<O>>,
}

/// Hands rows to the committing task.
pub(crate) struct Commits<I, O> {
    line: mpsc::Sender<Waiting<I, O>>,
    stop: CancellationToken,
    task: TaskTracker,
}

impl<I: Clone + Send + 'static, O: Send + 'static> Commits<I, O> {
    /// Starts the committing task.
    pub(crate) fn start<F>(commit: impl Fn(Vec<I>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Vec<O>, Error>> + Send + 'static,
    {
        let (line, waiting) = mpsc::channel(MAX_GROUP);
        let (stop, task) = (CancellationToken::new(), TaskTracker::new());
        let commit: Box<Commit<I, O>> = Box::new(move |rows| Box::pin(commit(rows)));
        task.spawn(commit_groups(commit, waiting, stop.clone()));
        task.close();
        Self { line, stop, task }
    }

    /// Returns when the row is committed.
    pub(crate) async fn commit(&self, row: I) -> Answer<O> {
        let (done, answer) = oneshot::channel();
        let gone = || Arc::new(Error::Unavailable("the committing task has ended".to_owned()));
        self.line.send(Waiting { row, done }).await.map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Ends the task when everybody who waits has an answer.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.task.wait().await;
    }
}

async fn commit_groups<I: Clone + Send + 'static, O: Send + 'static>(
    commit: Box<Commit<I, O>>,
    mut line: mpsc::Receiver<Waiting<I, O>>,
    stop: CancellationToken,
) {
    let mut group = Vec::with_capacity(MAX_GROUP);
    while next_group(&mut line, &mut group, &stop).await {
        let (rows, waiting): (Vec<I>, Vec<_>) =
            group.drain(..).map(|Waiting { row, done }| (row, done)).unzip();
        match commit(rows.clone()).await {
            Ok(answers) if answers.len() == waiting.len() => {
                for (answer, done) in answers.into_iter().zip(waiting) {
                    // A caller who does not wait any more finds out by reading the row.
                    let _ = done.send(Ok(answer));
                }
            }
            // Not an outage: a record that cannot be read, say. It must not fail the rows of others.
            Err(error) if !error.is_outage() && rows.len() > 1 => {
                for (row, done) in rows.into_iter().zip(waiting) {
                    let _ = done.send(alone(&commit, row).await);
                }
            }
            Ok(answers) => {
                let wrong = format!("{} answers for {} rows", answers.len(), waiting.len());
                fail_all(waiting, Error::Corrupt(wrong));
            }
            Err(error) => fail_all(waiting, error),
        }
    }
}

async fn alone<I: 'static, O: 'static>(commit: &Commit<I, O>, row: I) -> Answer<O> {
    let missing = || Error::Corrupt("no answer for a row".to_owned());
    let answers = commit(vec![row]).await.map_err(Arc::new)?;
    answers.into_iter().next().ok_or_else(|| Arc::new(missing()))
}

fn fail_all<O>(waiting: Vec<oneshot::Sender<Answer<O>>>, error: Error) {
    let error = Arc::new(error);
    for done in waiting {
        let _ = done.send(Err(error.clone()));
    }
}

/// Takes the next group from the line; `false` if there is none and there will be none. After `stop`, nobody can join the line
/// any more, and who stands in it is still served.
async fn next_group<T>(
    line: &mut mpsc::Receiver<T>,
    group: &mut Vec<T>,
    stop: &CancellationToken,
) -> bool {
    if !line.is_closed() {
        tokio::select! {
            taken = line.recv_many(group, MAX_GROUP) => return taken > 0,
            () = stop.cancelled() => line.close(),
        }
    }
    line.recv_many(group, MAX_GROUP).await > 0
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test]
    async fn rows_that_arrive_during_a_commit_share_the_next_one() {
        let groups = Arc::new(Mutex::new(Vec::new()));
        let seen = groups.clone();
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let opened = gate.clone();
        let commits = Arc::new(Commits::start(move |rows: Vec<u32>| {
            seen.lock().unwrap().push(rows.len());
            let opened = opened.clone();
            async move {
                opened.acquire().await.unwrap().forget();
                Ok(rows.into_iter().map(|row| row * 2).collect())
            }
        }));
        let ask = |row: u32| {
            let commits = commits.clone();
            tokio::spawn(async move { commits.commit(row).await.unwrap() })
        };
        let first = ask(1);
        while groups.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        let others: Vec<_> = (2..=10).map(ask).collect();
        // All nine are in line before the first group is done.
        while commits.line.capacity() > MAX_GROUP - 9 {
            tokio::task::yield_now().await;
        }
        gate.add_permits(2);
        assert_eq!(first.await.unwrap(), 2);
        for (number, other) in others.into_iter().enumerate() {
            assert_eq!(other.await.unwrap(), 2 * (number as u32 + 2));
        }
        assert_eq!(*groups.lock().unwrap(), [1, 9]);
        commits.stop().await;
    }

    #[tokio::test]
    async fn a_row_that_cannot_be_committed_fails_no_other() {
        let commits = Commits::start(|rows: Vec<u32>| async move {
            match rows.contains(&13) {
                true => Err(Error::Corrupt("13".to_owned())),
                false => Ok(rows),
            }
        });
        let (one, unlucky, two) =
            tokio::join!(commits.commit(1), commits.commit(13), commits.commit(2));
        assert_eq!((one.unwrap(), two.unwrap()), (1, 2));
        assert!(unlucky.is_err());
        commits.stop().await;
        assert!(commits.commit(1).await.is_err(), "nobody commits any more");
    }
}

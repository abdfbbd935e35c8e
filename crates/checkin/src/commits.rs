//! Group commits: scans that arrive at the same time share one transaction, because a commit costs the same for
//! one scan as for a hundred.
//!
//! There is no timer. While one group is committed, newcomers queue up, and the next group takes all of them: a
//! quiet server answers at once, a busy one in large groups.

use std::sync::Arc;

use stampede_store::{Error, NewScan, Recorded, Store};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::now;

/// Most requests of one group.
const MAX_GROUP: usize = 128;
/// A group with so many scans takes no more requests: uploads have up to 250 in one, and everybody waits for the commit.
const MAX_SCANS: usize = 500;

type Answer = Result<Vec<Recorded>, Arc<Error>>;

struct Waiting {
    scans: Vec<NewScan>,
    done: oneshot::Sender<Answer>,
}

/// Hands scans to the committing task.
pub(crate) struct Commits {
    line: mpsc::Sender<Waiting>,
    stop: CancellationToken,
    task: TaskTracker,
}

impl Commits {
    /// Starts the committing task.
    pub(crate) fn start(store: Store) -> Self {
        let (line, waiting) = mpsc::channel(MAX_GROUP);
        let (stop, task) = (CancellationToken::new(), TaskTracker::new());
        task.spawn(commit_groups(store, waiting, stop.clone()));
        task.close();
        Self { line, stop, task }
    }

    /// Returns when the scans are recorded, with an answer for each, in their order.
    pub(crate) async fn commit(&self, scans: Vec<NewScan>) -> Answer {
        let (done, answer) = oneshot::channel();
        let gone = || Arc::new(Error::Unavailable("the committing task has ended".to_owned()));
        self.line.send(Waiting { scans, done }).await.map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Ends the task when everybody who waits has an answer.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.task.wait().await;
    }
}

async fn commit_groups(store: Store, mut line: mpsc::Receiver<Waiting>, stop: CancellationToken) {
    let mut group = Vec::with_capacity(MAX_GROUP);
    while next_group(&mut line, &mut group, &stop).await {
        let (scans, waiting): (Vec<Vec<NewScan>>, Vec<_>) =
            group.drain(..).map(|Waiting { scans, done }| (scans, done)).unzip();
        let sizes: Vec<usize> = scans.iter().map(Vec::len).collect();
        let result = store.record_scans(&scans.concat(), now()).await;
        match result {
            // Not an outage: a record that cannot be read, say. It must not fail the scans of others.
            Err(error) if !matches!(error, Error::Unavailable(_)) && sizes.len() > 1 => {
                for (own, done) in scans.into_iter().zip(waiting) {
                    let _ = done.send(store.record_scans(&own, now()).await.map_err(Arc::new));
                }
            }
            result => answer_all(result.map(Vec::into_iter).map_err(Arc::new), sizes, waiting),
        }
    }
}

fn answer_all(
    mut result: Result<std::vec::IntoIter<Recorded>, Arc<Error>>,
    sizes: Vec<usize>,
    waiting: Vec<oneshot::Sender<Answer>>,
) {
    for (size, done) in sizes.into_iter().zip(waiting) {
        let own = match &mut result {
            Ok(answers) => Ok(answers.by_ref().take(size).collect()),
            Err(error) => Err(error.clone()),
        };
        // A caller who does not wait any more asks again with the same nonce.
        let _ = done.send(own);
    }
}

/// Takes the next group from the line; `false` if there is none and there will be none. After `stop`, nobody can
/// join the line any more, and who stands in it is still served.
async fn next_group(
    line: &mut mpsc::Receiver<Waiting>,
    group: &mut Vec<Waiting>,
    stop: &CancellationToken,
) -> bool {
    let first = if line.is_closed() {
        line.recv().await
    } else {
        let first = tokio::select! {
            first = line.recv() => first,
            () = stop.cancelled() => None,
        };
        match first {
            None => {
                line.close();
                line.recv().await
            }
            first => first,
        }
    };
    let mut next = first;
    let mut scans = 0;
    while let Some(waiting) = next {
        scans += waiting.scans.len();
        group.push(waiting);
        let is_full = group.len() >= MAX_GROUP || scans >= MAX_SCANS;
        next = if is_full { None } else { line.try_recv().ok() };
    }
    !group.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes of the groups that serve requests with so many scans each.
    async fn groups(requests: &[usize]) -> Vec<Vec<usize>> {
        let (line, mut waiting) = mpsc::channel(1_000);
        for scans in requests {
            let scans = vec![scan(); *scans];
            line.send(Waiting { scans, done: oneshot::channel().0 }).await.ok().unwrap();
        }
        let stop = CancellationToken::new();
        stop.cancel();
        let (mut groups, mut group) = (Vec::new(), Vec::new());
        while next_group(&mut waiting, &mut group, &stop).await {
            groups.push(group.drain(..).map(|waiting| waiting.scans.len()).collect());
        }
        groups
    }

    fn scan() -> NewScan {
        use stampede_model::{EventId, ScanId, ScanKind, TicketId, Timestamp};
        NewScan {
            id: ScanId::generate(),
            event_id: EventId::generate(),
            list: None,
            gate: None,
            scanner: stampede_store::Scanner { key: None, user: "ann".to_owned() },
            nonce: None,
            asked: String::new(),
            shown: stampede_store::Shown::Ticket(TicketId::generate()),
            kind: ScanKind::Entry,
            at: Timestamp::UNIX_EPOCH,
            device_at: None,
            offline: None,
        }
    }

    #[tokio::test]
    async fn a_group_is_limited_by_requests_and_by_scans() {
        assert_eq!(groups(&[]).await, Vec::<Vec<usize>>::new());
        assert_eq!(groups(&[1, 2, 3]).await, [vec![1, 2, 3]]);
        let uploads = groups(&[250, 250, 250, 1]).await;
        assert_eq!(uploads, [vec![250, 250], vec![250, 1]]);
        let single = groups(&[1; 200]).await;
        assert_eq!(single.iter().map(Vec::len).collect::<Vec<_>>(), [MAX_GROUP, 72]);
    }
}

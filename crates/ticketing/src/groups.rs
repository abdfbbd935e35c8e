//! Groups: what is wanted at the same time is done together, as a group read or a group commit.
//!
//! There is no timer. While one group is worked on, newcomers queue up, and the next group takes all of
//! them: a quiet process works at once, a busy one in large groups.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Most entries of one group.
pub(crate) const MAX_GROUP: usize = 256;

/// Takes the next group from the line; `false` if there is none and there will be none. After `stop`, nobody
/// can join the line any more, and who stands in it is still served.
pub(crate) async fn next_group<T>(
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
    use super::*;

    #[tokio::test]
    async fn who_stands_in_line_is_served_after_the_stop() {
        let (sender, mut line) = mpsc::channel(MAX_GROUP);
        let stop = CancellationToken::new();
        sender.send(1).await.unwrap();
        sender.send(2).await.unwrap();
        let mut group = Vec::new();
        assert!(next_group(&mut line, &mut group, &stop).await);
        assert_eq!(group, [1, 2], "all who wait are one group");
        sender.send(3).await.unwrap();
        stop.cancel();
        group.clear();
        assert!(next_group(&mut line, &mut group, &stop).await);
        assert!(sender.send(4).await.is_err() || line.is_closed() || group == [3]);
        assert!(!next_group(&mut line, &mut group, &stop).await);
        assert_eq!(group, [3]);
        assert!(sender.send(5).await.is_err());
    }
}

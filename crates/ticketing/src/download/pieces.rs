//! A file that is written while it is read, at the pace of its reader.
//!
//! A few pieces wait between writer and reader. The writer goes on when the reader has taken one, so a slow
//! reader costs no memory. A reader that is gone, or takes nothing for a minute, ends the writing.
//!
//! A file is whole only if its writer says so ([`PieceWriter::finish`]). A writer that is dropped before, by an
//! error, a panic or a stop, ends the file with an error, so that no reader takes a part for the whole.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use tokio::sync::mpsc;

/// Pieces between writer and reader.
const PIECES: usize = 4;
/// Bytes of the largest piece.
const PIECE: usize = 64 << 10;
/// A reader that takes nothing for this long is gone.
const PATIENCE: Duration = Duration::from_secs(60);

/// Nobody reads any more.
#[derive(Debug)]
pub(crate) struct Gone;

/// The reader's side of a file: its bytes in order, or an error if the rest does not come.
pub struct Pieces {
    taken: mpsc::Receiver<Bytes>,
    finished: Arc<AtomicBool>,
    /// The end of the file, or the error instead of it, was read.
    ended: bool,
}

impl Stream for Pieces {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        self.taken.poll_recv(context).map(|piece| match piece {
            Some(piece) => Some(Ok(piece)),
            None => {
                self.ended = true;
                let is_whole = self.finished.load(Ordering::Acquire);
                (!is_whole).then(|| Err(io::Error::other("the rest of the file could not be made")))
            }
        })
    }
}

/// The writer's side of a file.
pub(crate) struct PieceWriter {
    pieces: mpsc::Sender<Bytes>,
    finished: Arc<AtomicBool>,
}

impl PieceWriter {
    /// Both sides of a file.
    pub(crate) fn new() -> (Self, Pieces) {
        let (pieces, taken) = mpsc::channel(PIECES);
        let finished = Arc::new(AtomicBool::new(false));
        let reader = Pieces { taken, finished: finished.clone(), ended: false };
        (Self { pieces, finished }, reader)
    }

    /// Sends bytes, as soon as the reader has taken those before.
    pub(crate) async fn send(&self, bytes: Vec<u8>) -> Result<(), Gone> {
        let mut rest = Bytes::from(bytes);
        while !rest.is_empty() {
            let piece = rest.split_to(rest.len().min(PIECE));
            match tokio::time::timeout(PATIENCE, self.pieces.send(piece)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return Err(Gone),
            }
        }
        Ok(())
    }

    /// Ends the file: all of it was sent.
    pub(crate) fn finish(self) {
        self.finished.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt, TryStreamExt};

    use super::*;

    async fn read(pieces: Pieces) -> io::Result<Vec<u8>> {
        pieces.map_ok(|piece| piece.to_vec()).try_concat().await
    }

    #[tokio::test]
    async fn a_reader_gets_everything_in_order() {
        let (writer, pieces) = PieceWriter::new();
        let sent: Vec<u8> = (0..=255).cycle().take(1_000_000).collect();
        let copy = sent.clone();
        tokio::spawn(async move {
            writer.send(copy).await.unwrap();
            writer.finish();
        });
        assert_eq!(read(pieces).await.unwrap(), sent);
    }

    #[tokio::test]
    async fn a_reader_that_hangs_up_ends_the_writing() {
        let (writer, pieces) = PieceWriter::new();
        drop(pieces);
        assert!(writer.send(vec![0; 10]).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_nothing_is_given_up_and_costs_little() {
        let (writer, _pieces) = PieceWriter::new();
        let mut taken = 0;
        while writer.send(vec![0; PIECE]).await.is_ok() {
            taken += 1;
        }
        assert_eq!(taken, PIECES);
    }

    #[tokio::test]
    async fn a_file_whose_writer_is_dropped_is_an_error_for_its_reader() {
        let (writer, mut pieces) = PieceWriter::new();
        writer.send(vec![7]).await.unwrap();
        drop(writer);
        assert_eq!(pieces.next().await.unwrap().unwrap(), vec![7]);
        assert!(pieces.next().await.unwrap().is_err());
        assert!(pieces.next().await.is_none());
    }
}

//! A file that is written while it is read, at the pace of its reader.
//!
//! A few pieces wait between writer and reader. The writer goes on when the reader has taken one, so a slow
//! reader costs no memory. A reader that is gone, or takes nothing for a minute, ends the writing.
//!
//! A reader that has the beginning already, or wants a part, gets a window of the file: the rest is made and thrown away.
//!
//! A file is whole only if its writer says so ([`PieceWriter::finish`]). A writer that is dropped before, by an
//! error, a panic or a stop, ends the file with an error, so that no reader takes a part for the whole.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
    /// The bytes that the reader wants.
    window: Range<u64>,
    /// Bytes that were made.
    position: AtomicU64,
}

impl PieceWriter {
    /// Both sides of a file, or of a window of it.
    pub(crate) fn new(window: Range<u64>) -> (Self, Pieces) {
        let (pieces, taken) = mpsc::channel(PIECES);
        let finished = Arc::new(AtomicBool::new(false));
        let reader = Pieces { taken, finished: finished.clone(), ended: false };
        (Self { pieces, finished, window, position: AtomicU64::new(0) }, reader)
    }

    /// Bytes that were made so far.
    pub(crate) fn position(&self) -> u64 {
        self.position.load(Ordering::Relaxed)
    }

    /// Sends bytes, as soon as the reader has taken those before.
    pub(crate) async fn send(&self, bytes: Vec<u8>) -> Result<(), Gone> {
        let begin = self.position.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let within = |at: u64| at.clamp(begin, begin + bytes.len() as u64) - begin;
        let (from, to) = (within(self.window.start), within(self.window.end));
        let mut rest = Bytes::from(bytes).slice(from as usize..to as usize);
        while !rest.is_empty() {
            let piece = rest.split_to(rest.len().min(PIECE));
            match tokio::time::timeout(PATIENCE, self.pieces.send(piece)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return Err(Gone),
            }
        }
        if self.position() >= self.window.end {
            // Nobody wants the rest of the file.
            self.finished.store(true, Ordering::Release);
            return Err(Gone);
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
        let (writer, pieces) = PieceWriter::new(0..u64::MAX);
        let sent: Vec<u8> = (0..=255).cycle().take(1_000_000).collect();
        let copy = sent.clone();
        tokio::spawn(async move {
            writer.send(copy).await.unwrap();
            writer.finish();
        });
        assert_eq!(read(pieces).await.unwrap(), sent);
    }

    #[tokio::test]
    async fn a_window_is_a_part_of_the_file_and_ends_the_writing() {
        let file: Vec<u8> = (0..=255).collect();
        for window in [0..256, 0..1, 10..20, 255..256, 99..101, 0..300] {
            let (writer, pieces) = PieceWriter::new(window.clone());
            let copy = file.clone();
            let writing = tokio::spawn(async move {
                for piece in copy.chunks(10) {
                    writer.send(piece.to_vec()).await?;
                }
                writer.finish();
                Ok::<(), Gone>(())
            });
            let expected = &file[window.start as usize..(window.end as usize).min(256)];
            assert_eq!(read(pieces).await.unwrap(), expected, "{window:?}");
            assert_eq!(writing.await.unwrap().is_err(), window.end <= 256);
        }
    }

    #[tokio::test]
    async fn a_reader_that_hangs_up_ends_the_writing() {
        let (writer, pieces) = PieceWriter::new(0..u64::MAX);
        drop(pieces);
        assert!(writer.send(vec![0; 10]).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_nothing_is_given_up_and_costs_little() {
        let (writer, _pieces) = PieceWriter::new(0..u64::MAX);
        let mut taken = 0;
        while writer.send(vec![0; PIECE]).await.is_ok() {
            taken += 1;
        }
        assert_eq!(taken, PIECES);
    }

    #[tokio::test]
    async fn a_file_whose_writer_is_dropped_is_an_error_for_its_reader() {
        let (writer, mut pieces) = PieceWriter::new(0..u64::MAX);
        writer.send(vec![7]).await.unwrap();
        drop(writer);
        assert_eq!(pieces.next().await.unwrap().unwrap(), vec![7]);
        assert!(pieces.next().await.unwrap().is_err());
        assert!(pieces.next().await.is_none());
    }
}

//! A file that is written while it is read, at the pace of its reader.
//!
//! A few pieces wait between writer and reader. The writer goes on when the reader has taken one, so a slow
//! reader costs no memory. A reader that is gone, takes nothing for a minute, or takes less than 20 KB a second in the mean,
//! ends the writing: a download keeps one of few places.
//!
//! A reader that has the beginning already, or wants a part, gets a window of the file: the rest is made and thrown away.
//!
//! A file is whole only if its writer says so ([`PieceWriter::finish`]). A writer that is dropped before, by an
//! error, a panic or a stop, ends the file with an error, so that no reader takes a part for the whole. Of a file whose
//! length was promised, the last byte is sent by `finish`: a connection counts bytes, and would end a file in order that
//! has become longer meanwhile.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Pieces between writer and reader.
const PIECES: usize = 4;
/// Bytes of the largest piece.
const PIECE: usize = 64 << 10;
/// A reader that takes nothing for this long is gone.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes that earn a reader another second. Only the time counts in which the writer waits for its reader.
const BYTES_PER_S: u64 = 20 << 10;

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
    /// The length that the reader was told.
    promised: Option<u64>,
    pace: Mutex<Pace>,
}

/// How fast a reader takes its pieces.
#[derive(Debug, Default)]
struct Pace {
    /// Bytes that the reader took.
    bytes: u64,
    /// Time that the writer waited for the reader.
    waited: Duration,
    /// The last byte of a file whose length was promised.
    last: Option<Bytes>,
}

impl Pace {
    /// How long the reader may let the writer wait now.
    fn patience(&self) -> Duration {
        let earned = Duration::from_secs(self.bytes / BYTES_PER_S);
        (PATIENCE + earned).saturating_sub(self.waited).min(PATIENCE)
    }
}

impl PieceWriter {
    /// Both sides of a file, or of a window of it. `promised`: the length that the reader was told.
    pub(crate) fn new(window: Range<u64>, promised: Option<u64>) -> (Self, Pieces) {
        let (pieces, taken) = mpsc::channel(PIECES);
        let finished = Arc::new(AtomicBool::new(false));
        let reader = Pieces { taken, finished: finished.clone(), ended: false };
        let (position, pace) = (AtomicU64::new(0), Mutex::default());
        (Self { pieces, finished, window, position, promised, pace }, reader)
    }

    /// Bytes that were made so far.
    pub(crate) fn position(&self) -> u64 {
        self.position.load(Ordering::Relaxed)
    }

    /// Whether more was made than was promised.
    pub(crate) fn is_too_long(&self) -> bool {
        self.promised.is_some_and(|promised| self.position() > promised)
    }

    /// Sends bytes, as soon as the reader has taken those before.
    pub(crate) async fn send(&self, bytes: Vec<u8>) -> Result<(), Gone> {
        let begin = self.position.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        if self.is_too_long() {
            return Err(Gone);
        }
        let within = |at: u64| at.clamp(begin, begin + bytes.len() as u64) - begin;
        let (from, to) = (within(self.window.start), within(self.window.end));
        let ends_here = self.promised == Some(begin + to) && from < to;
        let mut rest = Bytes::from(bytes).slice(from as usize..to as usize);
        if ends_here {
            self.pace.lock().last = Some(rest.split_off(rest.len() - 1));
        }
        while !rest.is_empty() {
            self.pass(rest.split_to(rest.len().min(PIECE))).await?;
        }
        let goes_to_the_end = self.promised.is_some_and(|promised| self.window.end >= promised);
        if self.position() >= self.window.end && !goes_to_the_end {
            // Nobody wants the rest of the file.
            self.finished.store(true, Ordering::Release);
            return Err(Gone);
        }
        Ok(())
    }

    /// Passes a piece to the reader.
    async fn pass(&self, piece: Bytes) -> Result<(), Gone> {
        let (length, patience) = (piece.len() as u64, self.pace.lock().patience());
        let begun = Instant::now();
        let taken = tokio::time::timeout(patience, self.pieces.send(piece)).await;
        let mut pace = self.pace.lock();
        (pace.waited, pace.bytes) = (pace.waited + begun.elapsed(), pace.bytes + length);
        match taken {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Gone),
        }
    }

    /// Ends the file: all of it was sent.
    pub(crate) async fn finish(self) {
        let last = self.pace.lock().last.take();
        if let Some(last) = last
            && self.pass(last).await.is_err()
        {
            return;
        }
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
        let (writer, pieces) = PieceWriter::new(0..u64::MAX, None);
        let sent: Vec<u8> = (0..=255).cycle().take(1_000_000).collect();
        let copy = sent.clone();
        tokio::spawn(async move {
            writer.send(copy).await.unwrap();
            writer.finish().await;
        });
        assert_eq!(read(pieces).await.unwrap(), sent);
    }

    #[tokio::test]
    async fn a_window_is_a_part_of_the_file_and_ends_the_writing() {
        let file: Vec<u8> = (0..=255).collect();
        for window in [0..256, 0..1, 10..20, 255..256, 99..101, 0..300] {
            let (writer, pieces) = PieceWriter::new(window.clone(), None);
            let copy = file.clone();
            let writing = tokio::spawn(async move {
                for piece in copy.chunks(10) {
                    writer.send(piece.to_vec()).await?;
                }
                writer.finish().await;
                Ok::<(), Gone>(())
            });
            let expected = &file[window.start as usize..(window.end as usize).min(256)];
            assert_eq!(read(pieces).await.unwrap(), expected, "{window:?}");
            assert_eq!(writing.await.unwrap().is_err(), window.end <= 256);
        }
    }

    #[tokio::test]
    async fn a_reader_that_hangs_up_ends_the_writing() {
        let (writer, pieces) = PieceWriter::new(0..u64::MAX, None);
        drop(pieces);
        assert!(writer.send(vec![0; 10]).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_nothing_is_given_up_and_costs_little() {
        let (writer, _pieces) = PieceWriter::new(0..u64::MAX, None);
        let mut taken = 0;
        while writer.send(vec![0; PIECE]).await.is_ok() {
            taken += 1;
        }
        assert_eq!(taken, PIECES);
    }

    #[tokio::test]
    async fn a_file_whose_writer_is_dropped_is_an_error_for_its_reader() {
        let (writer, mut pieces) = PieceWriter::new(0..u64::MAX, None);
        writer.send(vec![7]).await.unwrap();
        drop(writer);
        assert_eq!(pieces.next().await.unwrap().unwrap(), vec![7]);
        assert!(pieces.next().await.unwrap().is_err());
        assert!(pieces.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_little_is_given_up_and_one_that_takes_enough_is_not() {
        for (piece, is_kept) in [(2 << 10, false), (64 << 10, true)] {
            let (writer, mut pieces) = PieceWriter::new(0..u64::MAX, None);
            let reading = tokio::spawn(async move {
                while pieces.next().await.is_some() {
                    tokio::time::sleep(Duration::from_secs(2)).await;
                }
            });
            let begun = Instant::now();
            let mut sent = 0;
            while sent < 500 && writer.send(vec![0; piece]).await.is_ok() {
                sent += 1;
            }
            assert_eq!(sent == 500, is_kept, "{sent} pieces of {piece} bytes");
            assert!(is_kept || begun.elapsed() < PATIENCE * 2, "{:?}", begun.elapsed());
            drop(writer);
            reading.await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_file_that_becomes_longer_than_promised_never_looks_whole() {
        for (made, window, is_whole) in [
            (vec![10, 10], 0..u64::MAX, true),
            (vec![10, 10], 5..20, true),
            (vec![10, 10], 5..12, true),
            (vec![10, 10, 1], 0..u64::MAX, false),
            (vec![10, 10, 1], 5..20, false),
            (vec![10, 11], 0..u64::MAX, false),
        ] {
            let (writer, pieces) = PieceWriter::new(window.clone(), Some(20));
            let lengths = made.clone();
            let writing = tokio::spawn(async move {
                for length in lengths {
                    writer.send(vec![0; length]).await?;
                }
                writer.finish().await;
                Ok::<(), Gone>(())
            });
            let told: Vec<_> = pieces.collect().await;
            let count: usize = told.iter().flatten().map(|piece| piece.len()).sum();
            let wanted = (window.end.min(20) - window.start) as usize;
            assert_eq!(told.iter().all(Result::is_ok), is_whole, "{made:?} {window:?}");
            assert_eq!(count == wanted, is_whole, "{made:?} {window:?}: {count} of {wanted}");
            let _ = writing.await;
        }
    }
}

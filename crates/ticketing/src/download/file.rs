//! The file of a batch before its first byte is sent: its version and length, and any part of it.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use futures::TryStreamExt;
use parking_lot::Mutex;
use stampede_broker::kept;
use stampede_model::Batch;

use super::merged::Begun;
use super::pieces::{PieceWriter, Pieces};
use super::places::Place;
use super::plan::Plan;
use super::{Broken, Extent, zipped};
use crate::{Error, Ticketing};

/// Longest time in which a merged PDF is made only to learn its length.
const MEASURE_PATIENCE: Duration = Duration::from_secs(30);
/// Lengths that are remembered.
const REMEMBERED: usize = 1_000;

/// The file of a batch.
pub struct BatchFile {
    pub(super) source: Source,
    /// The tickets that are not in a merged PDF.
    pub(super) left_out: Option<String>,
    /// A merged PDF has begun: its template works.
    pub(super) begun: Option<Begun>,
    /// One of the places for downloads.
    pub(super) place: Place,
}

/// What a file is made of.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) ticketing: Ticketing,
    pub(super) batch: Batch,
    pub(super) extent: Extent,
    pub(super) plan: Option<Plan>,
}

/// Lengths of merged PDFs, by their versions.
#[derive(Default)]
pub(crate) struct Lengths(Mutex<HashMap<String, u64>>);

impl Lengths {
    fn get(&self, version: &str) -> Option<u64> {
        self.0.lock().get(version).copied()
    }

    fn remember(&self, version: &str, length: u64) {
        let mut lengths = self.0.lock();
        if lengths.len() >= REMEMBERED {
            lengths.clear();
        }
        lengths.insert(version.to_owned(), length);
    }
}

impl BatchFile {
    /// The version of the file: equal versions have equal bytes, on every node. `None`: some of its PDFs have to be made
    /// again, so that the next download may have others.
    pub fn version(&self) -> Option<&str> {
        self.source.plan.as_ref().map(|plan| plan.version.as_str())
    }

    /// Its length, if it is known before the file is made.
    pub fn length(&self) -> Option<u64> {
        let plan = self.source.plan.as_ref()?;
        plan.length.or_else(|| self.source.ticketing.shared.lengths.get(&plan.version))
    }

    /// Its length, for which a merged PDF is made and thrown away. `None`: that takes too long, or the file has no version.
    pub async fn measured(&self) -> Result<Option<u64>, Error> {
        if self.source.plan.is_none() || self.length().is_some() {
            return Ok(self.length());
        }
        let Source { ticketing, batch, extent, .. } = &self.source;
        let Some(event) = ticketing.event(batch.event_id).await? else { return Ok(None) };
        let begun = Begun::new(ticketing, batch, *extent, &event).await?;
        let pieces = self.source.clone().written(0..u64::MAX, None, Some(begun), None);
        let counting = pieces.try_fold(0, async |sum, piece| Ok(sum + piece.len() as u64));
        // The writing of pieces that are dropped ends.
        let counted = tokio::time::timeout(MEASURE_PATIENCE, counting).await;
        Ok(counted.ok().and_then(Result::ok))
    }

    /// The tickets that are not in a merged PDF: `void: id, id; failed: id`, or `none`.
    pub fn left_out(&self) -> Option<&str> {
        self.left_out.as_deref()
    }

    /// The bytes of the file, or of a window of it. An error means that the rest of the file does not come.
    pub fn into_pieces(self, window: Range<u64>) -> Pieces {
        let promised = self.length();
        self.source.written(window, promised, self.begun, Some(self.place))
    }
}

impl Source {
    /// Writes the file in the background. A file that cannot be finished ends with an error for its reader.
    fn written(
        self,
        window: Range<u64>,
        promised: Option<u64>,
        begun: Option<Begun>,
        place: Option<Place>,
    ) -> Pieces {
        let (writer, pieces) = PieceWriter::new(window, promised);
        let requests = &self.ticketing.clone().shared.requests;
        let stop = requests.stop();
        requests.spawn(kept(async move {
            let written = tokio::select! {
                written = self.write(begun, promised, &writer) => written,
                () = stop.cancelled() => {
                    Err(Broken::Failed(Error::Internal("the server stops".to_owned())))
                }
            };
            let batch = self.batch.id;
            match written {
                Ok(()) => {
                    if let Some(plan) = &self.plan {
                        self.ticketing.shared.lengths.remember(&plan.version, writer.position());
                    }
                    writer.finish().await;
                }
                Err(Broken::Gone) if writer.is_too_long() => {
                    tracing::warn!(%batch, "a download was broken off: the batch was changed");
                }
                Err(Broken::Gone) => {
                    tracing::debug!(%batch, "a client has all it wants, or went away")
                }
                Err(Broken::Failed(error)) => {
                    tracing::error!(%batch, %error, "a download was broken off");
                }
            }
            drop(place);
        }));
        pieces
    }

    async fn write(
        &self,
        begun: Option<Begun>,
        promised: Option<u64>,
        pieces: &PieceWriter,
    ) -> Result<(), Broken> {
        let Self { ticketing, batch, extent, .. } = self;
        match begun {
            Some(begun) => begun.write(ticketing, batch, *extent, pieces).await?,
            None => zipped::write(ticketing, batch, *extent, self.plan.as_ref(), pieces).await?,
        }
        match promised {
            // A ticket was changed meanwhile: the reader was told another length.
            Some(length) if length != pieces.position() => {
                let told = format!("{} bytes instead of {length}", pieces.position());
                Err(Broken::Failed(Error::Internal(format!("the batch was changed: {told}"))))
            }
            _ => Ok(()),
        }
    }
}

//! The tickets of a batch as CSV, written while it is sent.

use stampede_broker::kept;
use stampede_guests::{Mark, Written};
use stampede_model::Batch;

use super::Broken;
use super::pieces::{PieceWriter, Pieces};
use crate::{Error, Ticketing};

impl Ticketing {
    /// The tickets of a batch as CSV, whatever their states. `None`: too many files are being downloaded at the same time.
    pub fn batch_as_csv(&self, batch: Batch, mark: Mark) -> Option<Pieces> {
        let place = self.shared.downloads.take(&batch.owner)?;
        let (writer, pieces) = PieceWriter::new(0..u64::MAX, None);
        let (ticketing, stop) = (self.clone(), self.shared.requests.stop());
        self.shared.requests.spawn(kept(async move {
            let written = tokio::select! {
                written = write(&ticketing, &batch, mark, &writer) => written,
                () = stop.cancelled() => {
                    Err(Broken::Failed(Error::Internal("the server stops".to_owned())))
                }
            };
            match written {
                Ok(()) => writer.finish().await,
                Err(Broken::Gone) => tracing::debug!(batch = %batch.id, "a client went away"),
                Err(Broken::Failed(error)) => {
                    tracing::error!(batch = %batch.id, %error, "a list of tickets was broken off");
                }
            }
            drop(place);
        }));
        Some(pieces)
    }
}

async fn write(
    ticketing: &Ticketing,
    batch: &Batch,
    mark: Mark,
    pieces: &PieceWriter,
) -> Result<(), Broken> {
    let (mut written, mut after) = (Written::begin(mark), None);
    while let Some((_, tickets)) = ticketing.page(batch, after).await? {
        after = tickets.last().map(|ticket| ticket.id);
        tickets.iter().for_each(|ticket| written.add(ticket));
        pieces.send(written.take().into_bytes()).await?;
    }
    // A batch without tickets has its header.
    pieces.send(written.take().into_bytes()).await?;
    Ok(())
}

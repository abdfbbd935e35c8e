//! The merged PDF: printed from the records, not put together from files.

use stampede_model::{Batch, TicketDocument, TicketStatus};
use stampede_press::Merger;

use super::{Broken, Extent, PieceWriter};
use crate::Ticketing;

/// Bytes that are sent at least at a time.
const PIECE: usize = 64 << 10;

pub(super) async fn write(
    ticketing: &Ticketing,
    batch: &Batch,
    extent: Extent,
    title: String,
    pieces: &PieceWriter,
) -> Result<(), Broken> {
    let (press, store) = (&ticketing.shared.press, &ticketing.shared.store);
    let mut merger = Merger::new(&title);
    let mut after = None;
    while let Some((event, tickets)) = ticketing.page(batch, after).await? {
        let template = press.ready(&event).await?;
        for ticket in &tickets {
            after = Some(ticket.id);
            let wanted = match ticket.status {
                TicketStatus::Completed => true,
                // Changed since the file began: it is printed as it is now.
                TicketStatus::Pending => extent == Extent::Whole,
                TicketStatus::Failed | TicketStatus::Void => false,
            };
            if !wanted {
                continue;
            }
            let token = store.token(ticket).await?;
            let document = TicketDocument::new(&event, ticket, &token);
            merger.add(press.compiler(), &template, &document).await?;
            if merger.waiting() >= PIECE {
                pieces.send(merger.take()).await?;
            }
        }
        // Stamping never waits for anything; other tasks need this thread too.
        tokio::task::yield_now().await;
    }
    pieces.send(merger.finish()?).await?;
    Ok(())
}

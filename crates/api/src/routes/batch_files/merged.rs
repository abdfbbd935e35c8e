//! The merged PDF: printed from the records, not put together from files.

use stampede_model::{Batch, TicketDocument, TicketStatus};
use stampede_press::Merger;

use super::{Broken, Extent, page};
use crate::app::App;
use crate::outlet::Outlet;

/// What is sent at least at a time.
const PIECE: usize = 64 << 10;

pub(super) async fn write(
    app: &App,
    batch: &Batch,
    extent: Extent,
    title: &str,
    outlet: &Outlet,
) -> Result<(), Broken> {
    let mut merger = Merger::new(title);
    let mut after = None;
    while let Some((event, tickets)) = page(app, batch, after).await? {
        let template = app.press.ready(&event).await?;
        for ticket in &tickets {
            after = Some(ticket.id);
            let wanted = match ticket.status {
                TicketStatus::Completed => true,
                // Changed since we began: what it says now is as good as made.
                TicketStatus::Pending => extent == Extent::Whole,
                TicketStatus::Failed | TicketStatus::Void => false,
            };
            if !wanted {
                continue;
            }
            let token = app.store.token(ticket).await?;
            let document = TicketDocument::new(&event, ticket, &token);
            merger.add(app.press.compiler(), &template, &document).await?;
            if merger.waiting() >= PIECE {
                outlet.send(merger.take()).await?;
            }
        }
        // Stamping never waits for anything; others want this thread too.
        tokio::task::yield_now().await;
    }
    outlet.send(merger.finish()?).await?;
    Ok(())
}

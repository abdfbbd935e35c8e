//! The log of scans, conflicts and statistics of an event.

use axum::Json;
use axum::extract::State;
use stampede_model::{EventId, GateId, KeyId, TicketId};
use stampede_store::ScanFilter;
use stampede_wire::Paged;
use stampede_wire::checkin::scans::{Conflict, Conflicts, ScanPage};
use stampede_wire::checkin::statistics::Statistics;

use super::setup::readable;
use crate::app::App;
use crate::auth::Caller;
use crate::input::Id;
use crate::page::{Page, Times};
use crate::problem::Problem;
use crate::query::{FromQuery, Params, Query};
use crate::routes::Paging;

/// Which scans to list.
pub(crate) struct Listing {
    filter: ScanFilter,
    paging: Paging,
}

impl FromQuery for Listing {
    fn from_query(query: &mut Query) -> Self {
        let times = Times::from_query(query);
        let filter = ScanFilter {
            from: times.from,
            to: times.to,
            result: query
                .about("The decision.")
                .parsed("result", "must be ok or a reason such as already_redeemed"),
            gate: query.about("The gate.").parsed::<GateId>("gate", "must be the id of a gate"),
            device: query
                .about("The device, or any key that scanned.")
                .parsed::<KeyId>("device", "must be the id of a device"),
            ticket: query
                .about("The ticket.")
                .parsed::<TicketId>("ticket", "must be the id of a ticket"),
        };
        Self { filter, paging: Paging::from_query(query) }
    }
}

/// A page of the log, newest first.
pub(crate) async fn scans(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<EventId>,
    Params(listing): Params<Listing>,
) -> Result<Json<ScanPage>, Problem> {
    readable(&app, &caller, id).await?;
    let Listing { filter, paging } = listing;
    Ok(Json(app.checkin.scans(id, &filter, paging.after()?, paging.limit()).await?))
}

pub(crate) async fn conflicts(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<EventId>,
    Params(page): Params<Page>,
) -> Result<Json<Paged<Conflicts>>, Problem> {
    readable(&app, &caller, id).await?;
    let conflicts = app.checkin.conflicts(id).await?.conflicts;
    let key = |conflict: &Conflict| format!("{:020}", conflict.scan.seq);
    Ok(Json(page.cut(conflicts, key, |conflicts| Conflicts { conflicts })))
}

pub(crate) async fn statistics(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<EventId>,
) -> Result<Json<Statistics>, Problem> {
    readable(&app, &caller, id).await?;
    Ok(Json(app.checkin.statistics(id).await?))
}

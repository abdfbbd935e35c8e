//! `/api/webhooks/{id}/deliveries`: what was sent, what was answered, and sending it once more.

use axum::Json;
use axum::extract::State;
use serde_json::json;
use stampede_model::{DeliveryId, Timestamp, WebhookId};
use stampede_store::Sorted;
use stampede_webhook::Redelivery;
use stampede_wire::webhooks::{
    Delivery, DeliveryLog, DeliveryPage, DeliveryState, RedeliveredMany, WebhookState,
};

use super::{disabled, managed, readable, subject};
use crate::app::App;
use crate::auth::{Caller, Writer};
use crate::body::Body;
use crate::describe::{Accepted, Located};
use crate::forms::{Mistakes, Parsed, form};
use crate::input::{Id, Ids};
use crate::page::Part;
use crate::problem::Problem;
use crate::query::{FromQuery, Params, Query};
use crate::trace::Audited;

form! {
    /// `POST /api/webhooks/{id}/redeliver`.
    pub(crate) struct RedeliverForm {
        /// Everything that failed or was cancelled at this time or later.
        since: Parsed<Timestamp> = "since" required,
    }
}

/// Which deliveries to list.
pub(crate) struct DeliveryListing {
    state: Option<DeliveryState>,
    kind: Option<String>,
    part: Part,
}

impl FromQuery for DeliveryListing {
    fn from_query(query: &mut Query) -> Self {
        const STATES: [&str; 4] = ["pending", "delivered", "failed", "cancelled"];
        let right = "must be pending, delivered, failed or cancelled";
        let state =
            query.about("Their state.").word("state", &STATES, right).map(|word| match word {
                "pending" => DeliveryState::Pending,
                "delivered" => DeliveryState::Delivered,
                "failed" => DeliveryState::Failed,
                _ => DeliveryState::Cancelled,
            });
        let kind = query.about("Exactly this kind, such as `batch.completed`.").text("kind");
        Self { state, kind, part: Part::from_query(query) }
    }
}

/// Deliveries of a webhook, newest first.
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<WebhookId>,
    Params(DeliveryListing { state, kind, part }): Params<DeliveryListing>,
) -> Result<Json<DeliveryPage>, Problem> {
    readable(&app, &caller, id).await?;
    let slice = part.slice(Sorted::NewestFirst)?;
    let deliveries = app.webhooks.deliveries(id, state, kind, &slice).await?;
    let next = part.page.next(&deliveries, |delivery| delivery.id);
    Ok(Json(DeliveryPage { deliveries, next }))
}

/// A delivery with its body, and every attempt.
pub(crate) async fn read(
    State(app): State<App>,
    caller: Caller,
    Ids(id, delivery): Ids<WebhookId, DeliveryId>,
) -> Result<Json<DeliveryLog>, Problem> {
    readable(&app, &caller, id).await?;
    let found = app.webhooks.delivery(id, delivery).await?;
    found.map(Json).ok_or_else(|| Problem::not_found("Delivery", &delivery))
}

/// Sends a delivery once more, under the same message id.
pub(crate) async fn redeliver(
    State(app): State<App>,
    caller: Writer,
    Ids(id, delivery): Ids<WebhookId, DeliveryId>,
) -> Result<Audited<Located<Accepted<Delivery>>>, Problem> {
    let webhook = managed(&app, &caller, id).await?;
    let noted = caller.begin_new(&app, subject(&webhook)).await?;
    match app.webhooks.redeliver(id, delivery).await? {
        Redelivery::Sent(delivery) => {
            let path = format!("/api/webhooks/{id}/deliveries/{}", delivery.id);
            let made = noted.after(&json!({ "delivery": delivery.id }));
            Ok(made.answer(Located(path, Accepted(*delivery))))
        }
        Redelivery::NotFound => Err(Problem::not_found("Delivery", &delivery)),
        Redelivery::Disabled => Err(disabled()),
    }
}

/// Sends everything once more that failed or was cancelled since a time.
pub(crate) async fn redeliver_all(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<WebhookId>,
    Body(form, _held): Body<RedeliverForm>,
) -> Result<Audited<Located<Accepted<RedeliveredMany>>>, Problem> {
    const A_TIME: &str = "must be a time such as 2026-11-21T19:30:00+03:00";
    let webhook = managed(&app, &caller, id).await?;
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    if !form.since.has_value() {
        mistakes.wrong("since", "is missing");
    }
    let since = mistakes.ruled(form.since, A_TIME, |Parsed(at)| Some(at));
    let since = mistakes.finish(since)?;
    if webhook.state == WebhookState::Disabled {
        return Err(disabled());
    }
    let noted = caller.begin_new(&app, subject(&webhook)).await?;
    let redelivered = app.webhooks.redeliver_all(id, since).await?;
    tracing::info!(user = caller.0.user, webhook = %id, redelivered, "webhook deliveries sent again");
    let sent = RedeliveredMany { redelivered };
    let path = format!("/api/webhooks/{id}/deliveries");
    Ok(noted.after(&sent).answer(Located(path, Accepted(sent))))
}

//! What a campaign would do: `POST /api/contracts/{id}/validate`, `…/preview`, `…/test`. Nothing of it is changed.

use axum::Json;
use axum::extract::State;
use serde_json::json;
use stampede_campaign::{MOST_TESTS, Previewed, Tested};
use stampede_model::CampaignId;
use stampede_wire::campaigns::{Preview, TemplateMistake, TestMessage, Validation};

use super::verbs::NothingForm;
use super::{find, not_found, subject};
use crate::app::App;
use crate::auth::{Caller, Writer};
use crate::body::{Body, MaybeBody};
use crate::forms::{List, Mistakes, Text, Whole, form};
use crate::input::Id;
use crate::problem::{Code, FieldError, Problem};
use crate::trace::Audited;

/// Longest address, in bytes.
const LONGEST_ADDRESS: usize = 1_000;

form! {
    /// `POST /api/contracts/{id}/preview`.
    pub(crate) struct ContractPreviewForm {
        /// The position of the recipient; 1 if absent.
        position: Whole<1> = "position",
    }
}

form! {
    /// `POST /api/contracts/{id}/test`.
    pub(crate) struct TestForm {
        /// Where the message is sent.
        addresses: List<Text<LONGEST_ADDRESS>, MOST_TESTS> = "addresses" required,
        /// The position of the recipient whose fields fill the message; the first if absent.
        position: Whole<1> = "position",
    }
}

/// Tells what a campaign would do if it were started now.
pub(crate) async fn validate(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<CampaignId>,
    MaybeBody(form): MaybeBody<NothingForm>,
) -> Result<Json<Validation>, Problem> {
    find(&app, &caller.0, id).await?;
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    mistakes.finish(Some(()))?;
    app.campaigns.validate(id).await?.map(Json).ok_or_else(|| not_found(id))
}

/// The message of one recipient as it would be sent.
pub(crate) async fn preview(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<CampaignId>,
    MaybeBody(form): MaybeBody<ContractPreviewForm>,
) -> Result<Json<Preview>, Problem> {
    find(&app, &caller.0, id).await?;
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let position = mistakes.value(form.position).map_or(1, |Whole(position)| position);
    let position = mistakes.finish(Some(position))?;
    match app.campaigns.preview(id, position).await? {
        Previewed::Done(preview) => Ok(Json(*preview)),
        Previewed::Mistaken(mistakes) => Err(mistaken(mistakes)),
        Previewed::NotFound => {
            let detail = format!("the campaign has no recipient at position {position}");
            Err(Problem::new(Code::NotFound, detail))
        }
    }
}

/// Sends the message to other addresses, to try it out.
pub(crate) async fn test(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<CampaignId>,
    Body(form, _held): Body<TestForm>,
) -> Result<Audited<Json<Vec<TestMessage>>>, Problem> {
    let before = find(&app, &caller.0, id).await?;
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    if !form.addresses.has_value() {
        mistakes.wrong("addresses", "is missing");
    }
    let mut addresses = Vec::new();
    if let Some(List(entries)) = mistakes.value(form.addresses) {
        if entries.is_empty() {
            mistakes.wrong("addresses", "must name an address");
        }
        for (index, entry) in entries.into_iter().enumerate() {
            match entry {
                Ok(Text(address)) => addresses.push(address),
                Err(message) => mistakes.wrong_entry(&format!("addresses[{index}]"), message),
            }
        }
    }
    let position = mistakes.value(form.position).map(|Whole(position)| position);
    let position = mistakes.finish(Some(position))?;
    let noted = caller.begin_new(&app, subject(&before)).await?;
    match app.campaigns.test_send(id, &addresses, position).await? {
        Tested::Done(sent) => {
            tracing::info!(user = caller.0.user, campaign = %id, messages = sent.len(), "test messages sent");
            let outcomes: Vec<&str> = sent.iter().map(|message| message.outcome.as_str()).collect();
            Ok(noted.after(&json!({ "outcomes": outcomes })).answer(Json(sent)))
        }
        Tested::Mistaken(mistakes) => Err(mistaken(mistakes)),
        Tested::NoAccount(why) => Err(Problem::new(Code::Conflict, why)),
        Tested::NotFound => Err(not_found(id)),
    }
}

/// 422 with the mistakes of a template, each with its place.
fn mistaken(mistakes: Vec<TemplateMistake>) -> Problem {
    let told = |mistake: TemplateMistake| {
        let place = match (mistake.line, mistake.column) {
            (Some(line), Some(column)) => format!("line {line}, column {column}: "),
            (Some(line), None) => format!("line {line}: "),
            _ => String::new(),
        };
        FieldError::new(format!("content.{}", mistake.part), format!("{place}{}", mistake.message))
    };
    Problem::invalid(mistakes.into_iter().map(told).collect())
}

//! What moves a campaign: start, pause, resume, cancel. What settles its recipients: retry-failed, unknown.

use axum::Json;
use axum::extract::State;
use stampede_campaign::{Moved, Paused, Settled, UnknownAction, Which};
use stampede_model::{CampaignId, RecipientId, Timestamp};
use stampede_wire::campaigns::{Contract, PausedContract, SettledRecipients};

use super::words::inline_word;
use super::{A_TIME, changed, find, not_found, subject, version};
use crate::app::{App, now};
use crate::auth::Writer;
use crate::body::{Body, MaybeBody};
use crate::forms::{Flag, Given, IdOf, List, Mistakes, Parsed, form};
use crate::input::Id;
use crate::problem::Problem;
use crate::trace::{Audited, Change};
use crate::version::{IfMatch, Tagged};

/// Most recipients that one request names.
const MOST_IDS: usize = 10_000;
/// Seconds after which a campaign that was changed by others is tried again.
const SOON_S: u32 = 1;

inline_word! {
    /// How recipients are settled of which nobody knows whether the message arrived.
    ActionWord of UnknownAction {
        "resend" => UnknownAction::Resend,
        "sent" => UnknownAction::Sent,
        "failed" => UnknownAction::Failed,
    }
}

form! {
    /// `POST /api/contracts/{id}/start`.
    pub(crate) struct StartForm {
        /// When it is to start; now if absent.
        start_at: Parsed<Timestamp> = "startAt",
    }
}

form! {
    /// `POST /api/contracts/{id}/pause`, `…/resume`, `…/cancel`: nothing.
    pub(crate) struct NothingForm {}
}

form! {
    /// `POST /api/contracts/{id}/retry-failed`.
    pub(crate) struct RetryForm {
        /// These failed recipients.
        ids: List<IdOf<RecipientId>, MOST_IDS> = "ids",
        /// All failed recipients; so it is if there is no body.
        all: Flag = "all",
    }
}

form! {
    /// `POST /api/contracts/{id}/unknown`.
    pub(crate) struct UnknownForm {
        /// `resend`: send again; `sent`: count as sent; `failed`: count as failed.
        action: Parsed<ActionWord> = "action" required,
        /// These recipients, as far as they are unknown.
        ids: List<IdOf<RecipientId>, MOST_IDS> = "ids",
        /// All unknown recipients.
        all: Flag = "all",
    }
}

/// The answer of a verb that moves a campaign.
type MovedAnswer = Result<Audited<Tagged<Json<Contract>>>, Problem>;

/// Starts a campaign, now or at a later time. A paused one is resumed; a running one stays as it is.
pub(crate) async fn start(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<CampaignId>,
    seen: IfMatch,
    MaybeBody(form): MaybeBody<StartForm>,
) -> MovedAnswer {
    let before = find(&app, &caller.0, id).await?;
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let at = mistakes.ruled(form.start_at, A_TIME, |Parsed(at)| Some(at));
    let at = mistakes.finish(Some(at))?.filter(|at| *at > now());
    let wanted = seen.demand(before.updated_at)?;
    let noted = caller.begin(&app, subject(&before), &before).await?;
    match app.campaigns.start(id, at, wanted).await? {
        Moved::Changed => Err(changed(&app, &caller.0, id, &seen).await),
        moved => answered(&caller, noted, moved, id, "started"),
    }
}

/// Resumes a paused campaign where it was.
pub(crate) async fn resume(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<CampaignId>,
    MaybeBody(form): MaybeBody<NothingForm>,
) -> MovedAnswer {
    let before = find(&app, &caller.0, id).await?;
    nothing(&form)?;
    let noted = caller.begin(&app, subject(&before), &before).await?;
    answered(&caller, noted, app.campaigns.resume(id).await?, id, "resumed")
}

/// Ends a campaign before its time.
pub(crate) async fn cancel(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<CampaignId>,
    MaybeBody(form): MaybeBody<NothingForm>,
) -> MovedAnswer {
    let before = find(&app, &caller.0, id).await?;
    nothing(&form)?;
    let noted = caller.begin(&app, subject(&before), &before).await?;
    answered(&caller, noted, app.campaigns.cancel(id).await?, id, "cancelled")
}

/// Pauses a campaign. The answer tells how many messages may still arrive.
pub(crate) async fn pause(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<CampaignId>,
    MaybeBody(form): MaybeBody<NothingForm>,
) -> Result<Audited<Tagged<Json<PausedContract>>>, Problem> {
    let before = find(&app, &caller.0, id).await?;
    nothing(&form)?;
    let noted = caller.begin(&app, subject(&before), &before).await?;
    match app.campaigns.pause(id).await? {
        Paused::Done(paused) => {
            let in_flight = paused.in_flight;
            tracing::info!(user = caller.0.user, campaign = %id, in_flight, "campaign paused");
            let (entry, version) = (noted.after(&*paused), version(&paused.contract));
            Ok(entry.answer(Tagged::new(version, Json(*paused))))
        }
        Paused::WrongState(contract) => Err(Problem::campaign_state(&contract, "be paused")),
        Paused::NotFound => Err(not_found(id)),
    }
}

fn nothing(form: &NothingForm) -> Result<(), Problem> {
    let mut mistakes = Mistakes::default();
    mistakes.only(form);
    mistakes.finish(Some(()))
}

fn answered(
    caller: &Writer,
    noted: Change,
    moved: Moved,
    id: CampaignId,
    done: &'static str,
) -> MovedAnswer {
    match moved {
        Moved::Done(contract) => {
            tracing::info!(user = caller.0.user, campaign = %id, done, "campaign moved");
            let (entry, version) = (noted.after(&*contract), version(&contract));
            Ok(entry.answer(Tagged::new(version, Json(*contract))))
        }
        Moved::WrongState(contract) => {
            Err(Problem::campaign_state(&contract, &format!("be {done}")))
        }
        Moved::Changed => Err(Problem::busy("the campaign").retry_after(SOON_S)),
        Moved::NotFound => Err(not_found(id)),
        Moved::Importing => Err(Problem::importing()),
        Moved::NotReady(problems) => Err(Problem::campaign_not_ready(&problems, done)),
    }
}

/// Tries failed recipients again, with all attempts.
pub(crate) async fn retry_failed(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<CampaignId>,
    MaybeBody(form): MaybeBody<RetryForm>,
) -> Result<Audited<Json<SettledRecipients>>, Problem> {
    let before = find(&app, &caller.0, id).await?;
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let which = match form.ids.is_named() || form.all.is_named() {
        true => which(&mut mistakes, form.ids, form.all),
        false => Some(Which::All),
    };
    let which = mistakes.finish(which)?;
    let noted = caller.begin(&app, subject(&before), &before.counts).await?;
    settled(&caller, noted, app.campaigns.retry_failed(id, &which).await?, id)
}

/// Settles recipients of which nobody knows whether the message arrived.
pub(crate) async fn unknown(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<CampaignId>,
    Body(form, _held): Body<UnknownForm>,
) -> Result<Audited<Json<SettledRecipients>>, Problem> {
    let before = find(&app, &caller.0, id).await?;
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let action = mistakes.required(form.action).map(|Parsed(ActionWord(action))| action);
    let which = which(&mut mistakes, form.ids, form.all);
    let (action, which) = mistakes.finish(action.zip(which))?;
    let noted = caller.begin(&app, subject(&before), &before.counts).await?;
    settled(&caller, noted, app.campaigns.settle_unknown(id, action, &which).await?, id)
}

/// The recipients that a request names: some of them, or all. It must say which.
fn which(
    mistakes: &mut Mistakes,
    ids: Given<List<IdOf<RecipientId>, MOST_IDS>>,
    all: Given<Flag>,
) -> Option<Which> {
    let (named, all) = (ids.has_value(), mistakes.value(all).is_some_and(|Flag(all)| all));
    match (named, all) {
        (true, true) => mistakes.wrong("all", "cannot be given together with ids"),
        (false, false) => mistakes.wrong("ids", "is missing: give ids, or \"all\": true"),
        (false, true) => return Some(Which::All),
        (true, false) => {}
    }
    let List(entries) = mistakes.value(ids)?;
    let mut wanted = Vec::with_capacity(entries.len());
    for (index, entry) in entries.into_iter().enumerate() {
        match entry {
            Ok(IdOf(Some(id))) => wanted.push(id),
            Ok(IdOf(None)) => {
                mistakes.wrong_entry(&format!("ids[{index}]"), "must be the id of a recipient");
            }
            Err(message) => mistakes.wrong_entry(&format!("ids[{index}]"), message),
        }
    }
    Some(Which::These(wanted))
}

fn settled(
    caller: &Writer,
    noted: Change,
    settled: Settled,
    id: CampaignId,
) -> Result<Audited<Json<SettledRecipients>>, Problem> {
    match settled {
        Settled::Done { recipients, contract } => {
            tracing::info!(user = caller.0.user, campaign = %id, recipients, "recipients settled");
            let entry = noted.after(&contract.counts);
            Ok(entry.answer(Json(SettledRecipients { recipients })))
        }
        Settled::WrongState(contract) => {
            Err(Problem::campaign_state(&contract, "have recipients settled"))
        }
        Settled::NotFound => Err(not_found(id)),
    }
}

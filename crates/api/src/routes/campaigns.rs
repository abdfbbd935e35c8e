//! `/api/contracts`: campaigns are made, listed, changed and deleted. Older software calls a campaign a contract.
//!
//! | file | routes |
//! |---|---|
//! | this one | campaigns themselves |
//! | `verbs.rs` | start, pause, resume, cancel; failed and unknown recipients |
//! | `recipients.rs` | recipients: list, read, import |
//! | `trial.rs` | validate, preview, test |
//! | `reports.rs` | the report, as JSON and CSV |
//! | `accounts.rs` | `/api/accounts` |
//! | `suppressions.rs` | `/api/suppressions` |
//! | `hooks.rs` | `/hooks/…`: what providers tell |
//! | `unsubscribe.rs` | `/u/{token}` |
//! | `forms.rs`, `entry.rs`, `words.rs` | the forms that several of them share: pacing and content, a recipient, words |
//!
//! Records of other people are answered with 404: an id tells nothing about them.

pub(crate) mod accounts;
mod entry;
mod forms;
pub(crate) mod hooks;
pub(crate) mod recipients;
pub(crate) mod reports;
pub(crate) mod suppressions;
pub(crate) mod trial;
pub(crate) mod unsubscribe;
pub(crate) mod verbs;
pub(crate) mod words;

use axum::Json;
use axum::extract::State;
use serde_json::json;
use stampede_audit::{Kind, Subject};
use stampede_campaign::{
    CampaignEdit, Created as Made, Deleted, Edited, MOST_ATTEMPTS, Mistake, NewCampaign,
    USUAL_ATTEMPTS, field_names,
};
use stampede_model::campaign::{AccountId, CampaignState, Content, Pacing};
use stampede_model::{CampaignId, EventId, Limit, Principal, Timestamp};
use stampede_store::{CampaignFilter, Sorted};
use stampede_wire::campaigns::{Contract, ContractPage, CreatedContract};

use self::entry::RecipientEntry;
use self::forms::{AutoPauseForm, ContentForm, PacingForm, auto_pause, content, pacing};
use crate::app::App;
use crate::auth::{Caller, Writer};
use crate::body::{Body, LargeBody};
use crate::describe::{Created, Located, NoContent};
use crate::forms::{Changes, Form, Given, Line, List, Mistakes, Parsed, Text, Whole, form};
use crate::input::Id;
use crate::page::Part;
use crate::problem::{Code, FieldError, Problem};
use crate::query::{FromQuery, Params, Query};
use crate::routes::CHANGE_TRIES;
use crate::trace::{Audited, Change};
use crate::version::{Fresh, IfMatch, IfNoneMatch, Tagged, Version};

/// Most recipients in the body of a request; more come as a file.
pub(crate) const MOST_IN_BODY: usize = 10_000;
/// Longest name of a time zone, longest code of a country.
const LONGEST_ZONE: usize = 100;
const LONGEST_COUNTRY: usize = 10;

const A_TIME: &str = "must be a time such as 2026-11-21T19:30:00+03:00";
const AN_ACCOUNT: &str = "is no account of yours";

form! {
    /// `POST /api/contracts`.
    pub(crate) struct ContractForm {
        /// The account that sends; `console` writes to the log.
        account_id: Parsed<AccountId> = "accountId" required,
        /// Its name, for people.
        name: Line<{ Limit::NAME.0 }> = "name" required,
        /// Recipients; more are added with `POST /api/contracts/{id}/recipients`.
        recipients: List<RecipientEntry, MOST_IN_BODY> = "recipients",
        /// What is sent; the recipients' own messages if absent.
        content: ContentForm = "content",
        /// How fast it sends, besides the rules of its account.
        pacing: PacingForm = "pacing",
        /// When it pauses by itself.
        auto_pause: AutoPauseForm = "autoPause",
        /// Most attempts for one recipient; 3 if absent.
        max_attempts: Whole<1, { MOST_ATTEMPTS as u64 }> = "maxAttempts",
        /// The time zone of its quiet hours, for recipients without one.
        time_zone: Text<LONGEST_ZONE> = "timeZone",
        /// The country of telephone numbers without a country's code, such as `DE`; the account's if absent.
        country: Text<LONGEST_COUNTRY> = "country",
        /// When it starts by itself; it is a draft until it is started if absent.
        start_at: Parsed<Timestamp> = "startAt",
        /// After this moment nothing more is sent.
        end_at: Parsed<Timestamp> = "endAt",
    }
}

form! {
    /// `PATCH /api/contracts/{id}`.
    pub(crate) struct ContractChangesForm {
        /// Its name, for people.
        name: Line<{ Limit::NAME.0 }> = "name",
        /// The account that sends. Not while it is running.
        account_id: Parsed<AccountId> = "accountId",
        /// What is sent, as a whole. Not while it is running.
        content: ContentForm = "content",
        /// How fast it sends, as a whole; `null`: only its account limits it. Holds at once.
        pacing: PacingForm = "pacing",
        /// When it pauses by itself, as a whole.
        auto_pause: AutoPauseForm = "autoPause",
        /// Most attempts for one recipient.
        max_attempts: Whole<1, { MOST_ATTEMPTS as u64 }> = "maxAttempts",
        /// The time zone of its quiet hours.
        time_zone: Text<LONGEST_ZONE> = "timeZone",
        /// The country of telephone numbers without a country's code, for recipients that are added later.
        country: Text<LONGEST_COUNTRY> = "country",
        /// After this moment nothing more is sent.
        end_at: Parsed<Timestamp> = "endAt",
    }
}

/// All other fields of a campaign.
const FIXED: [&str; 16] = [
    "id",
    "owner",
    "channel",
    "status",
    "statusReason",
    "startAt",
    "eventId",
    "batchId",
    "counts",
    "progress",
    "importing",
    "etaAt",
    "createdAt",
    "updatedAt",
    "startedAt",
    "endedAt",
];

/// Which campaigns to list.
pub(crate) struct ContractListing {
    state: Option<CampaignState>,
    account: Option<AccountId>,
    event: Option<EventId>,
    part: Part,
}

impl FromQuery for ContractListing {
    fn from_query(query: &mut Query) -> Self {
        const RIGHT: &str = "must be draft, scheduled, running, paused, completed or cancelled";
        let state = query.about("Their state.").word("state", CampaignState::WORDS, RIGHT);
        let account =
            query.about("Those of this account.").parsed("account", "must be the id of an account");
        let event = query.about("Those for guests of this event.");
        let event = event.parsed("event", "must be the id of an event");
        let state = state.and_then(CampaignState::from_word);
        Self { state, account, event, part: Part::from_query(query) }
    }
}

/// Makes a campaign with the recipients of the request. It is a draft until it is started, unless it has a time to start.
pub(crate) async fn create(
    State(app): State<App>,
    caller: Writer,
    LargeBody(form, _held): LargeBody<ContractForm>,
) -> Result<Audited<Tagged<Located<Created<CreatedContract>>>>, Problem> {
    let owner = caller.0.user.clone();
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let values = CampaignEdit {
        name: mistakes.required(form.name).map(|Line(name)| name),
        account: mistakes.required(form.account_id).map(|Parsed(account)| account),
        content: content(&mut mistakes, form.content),
        pacing: pacing(&mut mistakes, form.pacing),
        auto_pause: auto_pause(&mut mistakes, form.auto_pause),
        max_attempts: mistakes.value(form.max_attempts).map(|Whole(most)| most as u32),
        time_zone: mistakes.value(form.time_zone).map(|Text(zone)| Some(zone)),
        country: mistakes.value(form.country).map(|Text(country)| Some(country)),
        end_at: mistakes.ruled(form.end_at, A_TIME, |Parsed(at)| Some(Some(at))),
    };
    let start_at = mistakes.ruled(form.start_at, A_TIME, |Parsed(at)| Some(at));
    let rows = rows(&mut mistakes, form.recipients);
    let known = field_names(&rows);
    add(&mut mistakes, app.campaigns.examine(&owner, &values, start_at, known.as_ref()).await?);
    let (name, account) = mistakes.finish(values.name.zip(values.account))?;
    let new = NewCampaign {
        owner,
        name,
        account,
        content: values.content.unwrap_or(Content::Own),
        pacing: values.pacing.unwrap_or_default(),
        auto_pause: values.auto_pause.unwrap_or_default(),
        max_attempts: values.max_attempts.unwrap_or(USUAL_ATTEMPTS),
        time_zone: values.time_zone.flatten(),
        country: values.country.flatten(),
        start_at,
        end_at: values.end_at.flatten(),
    };
    let noted = caller.begin_new(&app, Subject::new(Kind::Campaign)).await?;
    match app.campaigns.create(new, rows).await? {
        Made::Done(created) => {
            let contract = &created.contract;
            tracing::info!(user = caller.0.user, campaign = %contract.id, "campaign made");
            let location = format!("/api/contracts/{}", contract.id);
            let (entry, version) = (noted.after(contract), version(contract));
            Ok(entry.answer(Tagged::new(version, Located(location, Created(*created)))))
        }
        Made::Invalid(mistakes) => Err(invalid(mistakes)),
        Made::NotReady(problems) => Err(Problem::campaign_not_ready(&problems, "scheduled")),
    }
}

/// Adds what the room has found to the mistakes of a form.
fn add(mistakes: &mut Mistakes, found: Vec<Mistake>) {
    mistakes.also(found.into_iter().map(|Mistake { field, message }| (field, message)));
}

/// The recipients of a request; a wrong one is told with its place.
pub(crate) fn rows(
    mistakes: &mut Mistakes,
    given: Given<List<RecipientEntry, MOST_IN_BODY>>,
) -> Vec<stampede_campaign::RecipientRow> {
    let Some(List(entries)) = mistakes.value(given) else { return Vec::new() };
    let mut rows = Vec::with_capacity(entries.len());
    for (index, entry) in entries.into_iter().enumerate() {
        match entry {
            Ok(RecipientEntry(row)) => rows.push(row),
            Err(message) => mistakes.wrong_entry(&format!("recipients[{index}]"), message),
        }
    }
    rows
}

/// Campaigns that the caller may see, newest first.
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(ContractListing { state, account, event, part }): Params<ContractListing>,
) -> Result<Json<ContractPage>, Problem> {
    let owner = caller.0.visible_owner().map(str::to_owned);
    let filter = CampaignFilter { owner, state, account, event };
    let slice = part.slice(Sorted::NewestFirst)?;
    let contracts = app.campaigns.list(&filter, &slice).await?;
    let next = part.page.next(&contracts, |contract| contract.id);
    Ok(Json(ContractPage { contracts, next }))
}

pub(crate) async fn read(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<CampaignId>,
    known: IfNoneMatch,
) -> Result<Fresh<Json<Contract>>, Problem> {
    let contract = find(&app, &caller.0, id).await?;
    Ok(known.answer(version(&contract), Json(contract)))
}

/// Changes the fields that are given.
pub(crate) async fn update(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<CampaignId>,
    seen: IfMatch,
    Body(Changes(form), _held): Body<Changes<ContractChangesForm>>,
) -> Result<Audited<Tagged<Json<Contract>>>, Problem> {
    let campaign = find(&app, &caller.0, id).await?;
    let mut mistakes = Mistakes::default();
    let edit = read_edit(&mut mistakes, form);
    let mut values = edit.clone();
    values.account.get_or_insert(campaign.account_id);
    let known = app.campaigns.fields_of(id).await?;
    add(
        &mut mistakes,
        app.campaigns.examine(&campaign.owner, &values, None, known.as_ref()).await?,
    );
    let edit = mistakes.finish(Some(edit))?;
    let mut begun: Option<Change> = None;
    for _ in 0..CHANGE_TRIES {
        let before = find(&app, &caller.0, id).await?;
        let wanted = seen.demand(before.updated_at)?;
        let noted = match begun.take() {
            Some(noted) => noted.rebased(&before),
            None => caller.begin(&app, subject(&before), &before).await?,
        };
        match app.campaigns.edit(id, wanted, &edit).await? {
            Edited::Done(contract) => {
                tracing::info!(user = caller.0.user, campaign = %id, "campaign changed");
                let (entry, version) = (noted.after(&*contract), version(&contract));
                return Ok(entry.answer(Tagged::new(version, Json(*contract))));
            }
            Edited::Changed => begun = Some(noted),
            Edited::NotFound => return Err(not_found(id)),
            Edited::WrongState(contract, field) => {
                let done = format!("get another {field}; pause it first");
                return Err(Problem::campaign_state(&contract, &done));
            }
            Edited::HasStarted(contract) => {
                let done = "get another accountId: it has started, and its messages and receipts belong to the account; \
                     send to the others with another campaign";
                return Err(Problem::campaign_state(&contract, done));
            }
            Edited::Importing => return Err(Problem::importing()),
            Edited::NoSuchAccount => return Err(no_such_account()),
            Edited::Invalid(mistakes) => return Err(invalid(mistakes)),
        }
    }
    Err(Problem::busy("the campaign"))
}

fn read_edit(mistakes: &mut Mistakes, form: ContractChangesForm) -> CampaignEdit {
    mistakes.only_or_fixed(&form, &FIXED);
    mistakes.must_name_one_of(form.names_any(), ContractChangesForm::NAMES);
    for (name, is_cleared) in [
        ("name", form.name.is_cleared()),
        ("accountId", form.account_id.is_cleared()),
        ("maxAttempts", form.max_attempts.is_cleared()),
    ] {
        if is_cleared {
            mistakes.wrong(name, "is missing");
        }
    }
    let (own, unpaced) = (form.content.is_cleared(), form.pacing.is_cleared());
    let usual = form.auto_pause.is_cleared();
    CampaignEdit {
        name: mistakes.value(form.name).map(|Line(name)| name),
        account: mistakes.value(form.account_id).map(|Parsed(account)| account),
        content: content(mistakes, form.content).or(own.then_some(Content::Own)),
        pacing: pacing(mistakes, form.pacing).or(unpaced.then(Pacing::default)),
        auto_pause: auto_pause(mistakes, form.auto_pause).or(usual.then(Default::default)),
        max_attempts: mistakes.value(form.max_attempts).map(|Whole(most)| most as u32),
        time_zone: cleared(&form.time_zone)
            .or(mistakes.value(form.time_zone).map(|Text(zone)| Some(zone))),
        country: cleared(&form.country)
            .or(mistakes.value(form.country).map(|Text(country)| Some(country))),
        end_at: cleared(&form.end_at)
            .or(mistakes.ruled(form.end_at, A_TIME, |Parsed(at)| Some(Some(at)))),
    }
}

/// The change that clears a field, if it is given as `null`.
pub(crate) fn cleared<T, V>(given: &Given<T>) -> Option<Option<V>> {
    given.is_cleared().then_some(None)
}

/// Deletes a campaign with its recipients; a running one is paused first.
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<CampaignId>,
    seen: IfMatch,
) -> Result<Audited<NoContent>, Problem> {
    let mut begun: Option<Change> = None;
    for _ in 0..CHANGE_TRIES {
        let before = find(&app, &caller.0, id).await?;
        let wanted = seen.demand(before.updated_at)?;
        let noted = match begun.take() {
            Some(noted) => noted.rebased(&before),
            None => caller.begin(&app, subject(&before), &before).await?,
        };
        match app.campaigns.delete(id, wanted).await? {
            Deleted::Done => {
                tracing::info!(user = caller.0.user, campaign = %id, "campaign deleted");
                return Ok(noted.gone().answer(NoContent));
            }
            Deleted::Changed => begun = Some(noted),
            Deleted::NotFound => return Err(not_found(id)),
        }
    }
    Err(Problem::busy("the campaign"))
}

/// The version of a campaign. Its counts change by themselves. `etaAt` does not count: it is an estimate from now on, so that no
/// two answers would be the same.
fn version(contract: &Contract) -> Version {
    let shown = Contract { eta_at: None, ..contract.clone() };
    Version::from(contract.updated_at).showing(&shown)
}

/// The campaign as the audit log names it.
fn subject(contract: &Contract) -> Subject {
    Subject { event: contract.event_id, ..Subject::of(Kind::Campaign, contract.id) }
}

/// The campaign, if the caller may see it. Who may not learns nothing of it.
pub(crate) async fn find(
    app: &App,
    caller: &Principal,
    id: CampaignId,
) -> Result<Contract, Problem> {
    let found = app.campaigns.campaign(id).await?;
    found.filter(|contract| caller.may_read(&contract.owner)).ok_or_else(|| not_found(id))
}

fn not_found(id: CampaignId) -> Problem {
    Problem::not_found("Contract", &id)
}

/// 412 if `If-Match` names versions, because somebody else was faster; 409 otherwise.
async fn changed(app: &App, caller: &Principal, id: CampaignId, seen: &IfMatch) -> Problem {
    match find(app, caller, id).await {
        Ok(contract) => match seen.check(&contract.updated_at.into()) {
            Ok(()) => Problem::busy("the campaign"),
            Err(problem) => problem,
        },
        Err(problem) => problem,
    }
}

fn no_such_account() -> Problem {
    Problem::invalid(vec![FieldError::new("accountId", AN_ACCOUNT)])
}

/// 422 with the mistakes that the room has found.
pub(crate) fn invalid(mistakes: Vec<Mistake>) -> Problem {
    let told = |Mistake { field, message }: Mistake| FieldError::new(field, message);
    Problem::invalid(mistakes.into_iter().map(told).collect())
}

impl Problem {
    /// 409: the campaign's state does not allow it to be `done`; the member `state` says which it is.
    pub(crate) fn campaign_state(contract: &Contract, done: &str) -> Self {
        let state = contract.status.as_str();
        let reason = contract.status_reason.as_deref().map(|reason| format!(" ({reason})"));
        let detail =
            format!("the campaign is {state}{} and cannot {done}", reason.unwrap_or_default());
        Self::new(Code::CampaignState, detail).with("state", state.into())
    }

    /// 409: the campaign cannot be `done` for these reasons, each a sentence; they are the member `problems`.
    pub(crate) fn campaign_not_ready(problems: &[String], done: &str) -> Self {
        let detail = format!("the campaign cannot be {done}: {}", problems.join("; "));
        Self::new(Code::CampaignNotReady, detail).with("problems", json!(problems))
    }

    /// 409: recipients of the campaign are being imported.
    pub(crate) fn importing() -> Self {
        let detail = "recipients of the campaign are being imported; try again when they are";
        Self::new(Code::Importing, detail).retry_after(2)
    }
}

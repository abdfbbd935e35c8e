//! `/api/accounts`: who sends. Credentials go in and never come out.

use axum::Json;
use axum::extract::State;
use serde_json::Value;
use stampede_audit::{Kind, Subject};
use stampede_campaign::{
    AccountChange, AccountChanged, AccountDeleted, AccountMade, MOST_ACCOUNTS, NewAccount,
};
use stampede_model::campaign::{AccountId, Channel};
use stampede_model::{Limit, Principal, Role};
use stampede_store::{AccountFilter, Sorted};
use stampede_wire::campaigns::{Account, AccountCheck, AccountPage};

use super::forms::{PacingForm, pacing};
use super::verbs::NothingForm;
use super::words::ChannelWord;
use super::{LONGEST_COUNTRY, LONGEST_ZONE, cleared, invalid};
use crate::app::App;
use crate::auth::{Caller, Writer};
use crate::body::{Body, MaybeBody};
use crate::describe::{Created, Located, NoContent};
use crate::forms::{Changes, Flag, Form, Given, Line, Mistakes, Parsed, Payload, Text, form};
use crate::input::Id;
use crate::page::{Page, Times};
use crate::problem::{Code, Problem};
use crate::query::{FromQuery, Params, Query};
use crate::routes::CHANGE_TRIES;
use crate::trace::{Audited, Change};
use crate::version::{Fresh, IfMatch, IfNoneMatch, Tagged, Version};

const AN_OBJECT: &str = "must be an object";

form! {
    /// `POST /api/accounts`.
    pub(crate) struct AccountForm {
        /// Its id: 1 to 64 letters, digits, `-`, `_` or `.`; one is made if absent.
        id: Parsed<AccountId> = "id",
        /// Its name, for people; the id if absent.
        name: Line<{ Limit::NAME.0 }> = "name",
        /// Its channel.
        channel: Parsed<ChannelWord> = "channel" required,
        /// The settings of its channel: docs/campaigns.md lists them.
        settings: Payload = "settings",
        /// Its credentials, which are encrypted and never shown.
        credentials: Payload = "credentials",
        /// How fast it sends; 20 messages a minute without a limit.
        pacing: PacingForm = "pacing",
        /// The country of telephone numbers without a country's code, such as `DE`.
        country: Text<LONGEST_COUNTRY> = "country",
        /// The time zone of its days and quiet hours.
        time_zone: Text<LONGEST_ZONE> = "timeZone",
        /// Whether everybody may send with it; only administrators make such accounts.
        shared: Flag = "shared",
    }
}

form! {
    /// `PATCH /api/accounts/{id}`.
    pub(crate) struct AccountChangesForm {
        /// Its name, for people.
        name: Line<{ Limit::NAME.0 }> = "name",
        /// Settings of its channel: those that are absent stay, `null` removes one.
        settings: Payload = "settings",
        /// Credentials: those that are absent stay, `null` removes one.
        credentials: Payload = "credentials",
        /// How fast it sends, as a whole. Holds at once, for running campaigns, too.
        pacing: PacingForm = "pacing",
        /// The country of telephone numbers without a country's code.
        country: Text<LONGEST_COUNTRY> = "country",
        /// The time zone of its days and quiet hours.
        time_zone: Text<LONGEST_ZONE> = "timeZone",
    }
}

/// All other fields of an account.
const FIXED: [&str; 7] =
    ["id", "owner", "channel", "blockedReason", "firstSentAt", "createdAt", "updatedAt"];

/// Which accounts to list.
pub(crate) struct AccountListing {
    channel: Option<Channel>,
    page: Page,
}

impl FromQuery for AccountListing {
    fn from_query(query: &mut Query) -> Self {
        const RIGHT: &str = "must be console, webhook, smtp, telegram, whatsapp or sms";
        let channel = query.about("Their channel.").word("channel", ChannelWord::WORDS, RIGHT);
        Self { channel: channel.and_then(Channel::from_word), page: Page::from_query(query) }
    }
}

/// Makes an account.
pub(crate) async fn create(
    State(app): State<App>,
    caller: Writer,
    Body(form, _held): Body<AccountForm>,
) -> Result<Audited<Tagged<Located<Created<Account>>>>, Problem> {
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let id = mistakes.value(form.id).map(|Parsed(id)| id);
    let name = mistakes.value(form.name).map(|Line(name)| name);
    let channel = mistakes.required(form.channel).map(|Parsed(ChannelWord(channel))| channel);
    let settings = object(&mut mistakes, form.settings);
    let credentials = object(&mut mistakes, form.credentials);
    let pacing = pacing(&mut mistakes, form.pacing).unwrap_or_default();
    let country = mistakes.value(form.country).map(|Text(country)| country);
    let time_zone = mistakes.value(form.time_zone).map(|Text(zone)| zone);
    let shared = mistakes.value(form.shared).is_some_and(|Flag(flag)| flag);
    if shared && caller.0.role != Role::Admin {
        mistakes.wrong("shared", "needs the role admin");
    }
    let channel = mistakes.finish(channel)?;
    let usual_name = || id.as_ref().map_or(channel.as_str(), AccountId::as_str).to_owned();
    let new = NewAccount {
        owner: (!shared).then(|| caller.0.user.clone()),
        name: name.unwrap_or_else(usual_name),
        id,
        channel,
        settings: settings.unwrap_or_else(|| Value::Object(serde_json::Map::new())),
        credentials: credentials.unwrap_or_default(),
        pacing,
        country,
        time_zone,
    };
    let noted = caller.begin_new(&app, Subject::new(Kind::Account)).await?;
    match app.campaigns.create_account(new).await? {
        AccountMade::Done(account) => {
            tracing::info!(user = caller.0.user, account = %account.id, "account made");
            let location = format!("/api/accounts/{}", account.id);
            let (entry, version) = (noted.after(&*account), version(&account));
            Ok(entry.answer(Tagged::new(version, Located(location, Created(*account)))))
        }
        AccountMade::Taken => {
            let detail = "another account has this id; choose another one, or leave it out";
            Err(Problem::new(Code::IdTaken, detail))
        }
        AccountMade::TooMany => {
            let detail = format!("a user has at most {MOST_ACCOUNTS} accounts; delete one");
            Err(Problem::new(Code::TooMany, detail))
        }
        AccountMade::Invalid(mistakes) => Err(invalid(mistakes)),
    }
}

/// An object of JSON.
fn object(mistakes: &mut Mistakes, given: Given<Payload>) -> Option<Value> {
    mistakes.ruled(given, AN_OBJECT, |payload| payload.value.is_object().then_some(payload.value))
}

/// Accounts that the caller may use, sorted by id.
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(AccountListing { channel, page }): Params<AccountListing>,
) -> Result<Json<AccountPage>, Problem> {
    let usable_by = caller.0.visible_owner().map(str::to_owned);
    let filter = AccountFilter { usable_by, channel };
    let slice = page.slice(Sorted::OldestFirst, &Times::default())?;
    let accounts = app.campaigns.accounts(&filter, &slice).await?;
    let next = page.next(&accounts, |account| account.id.clone());
    Ok(Json(AccountPage { accounts, next }))
}

pub(crate) async fn read(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<AccountId>,
    known: IfNoneMatch,
) -> Result<Fresh<Json<Account>>, Problem> {
    let account = find(&app, &caller.0, &id).await?;
    Ok(known.answer(version(&account), Json(account)))
}

/// Changes the fields that are given.
pub(crate) async fn update(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<AccountId>,
    seen: IfMatch,
    Body(Changes(form), _held): Body<Changes<AccountChangesForm>>,
) -> Result<Audited<Tagged<Json<Account>>>, Problem> {
    managed(&app, &caller, &id).await?;
    let change = read_change(form)?;
    let mut begun: Option<Change> = None;
    for _ in 0..CHANGE_TRIES {
        let before = managed(&app, &caller, &id).await?;
        let wanted = seen.demand(before.updated_at)?;
        let noted = match begun.take() {
            Some(noted) => noted.rebased(&before),
            None => caller.begin(&app, Subject::of(Kind::Account, &id), &before).await?,
        };
        match app.campaigns.change_account(&id, wanted, &change).await? {
            AccountChanged::Done(account) => {
                let credentials = change.credentials.is_some();
                tracing::info!(user = caller.0.user, account = %id, credentials, "account changed");
                let (entry, version) = (noted.after(&*account), version(&account));
                return Ok(entry.answer(Tagged::new(version, Json(*account))));
            }
            AccountChanged::Changed => begun = Some(noted),
            AccountChanged::NotFound => return Err(not_found(&id)),
            AccountChanged::Invalid(mistakes) => return Err(invalid(mistakes)),
        }
    }
    Err(Problem::busy("the account"))
}

fn read_change(form: AccountChangesForm) -> Result<AccountChange, Problem> {
    let mut mistakes = Mistakes::default();
    mistakes.only_or_fixed(&form, &FIXED);
    mistakes.must_name_one_of(form.names_any(), AccountChangesForm::NAMES);
    if form.name.is_cleared() {
        mistakes.wrong("name", "is missing");
    }
    let (no_settings, no_credentials) = (form.settings.is_cleared(), form.credentials.is_cleared());
    let unpaced = form.pacing.is_cleared();
    let change = AccountChange {
        name: mistakes.value(form.name).map(|Line(name)| name),
        settings: object(&mut mistakes, form.settings)
            .or_else(|| no_settings.then_some(Value::Null)),
        credentials: object(&mut mistakes, form.credentials)
            .or_else(|| no_credentials.then_some(Value::Null)),
        pacing: pacing(&mut mistakes, form.pacing).or_else(|| unpaced.then(Default::default)),
        country: cleared(&form.country)
            .or(mistakes.value(form.country).map(|Text(country)| Some(country))),
        time_zone: cleared(&form.time_zone)
            .or(mistakes.value(form.time_zone).map(|Text(zone)| Some(zone))),
    };
    mistakes.finish(Some(change))
}

/// Deletes an account that no campaign uses which is scheduled, running or paused.
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<AccountId>,
    seen: IfMatch,
) -> Result<Audited<NoContent>, Problem> {
    let mut begun: Option<Change> = None;
    for _ in 0..CHANGE_TRIES {
        let before = managed(&app, &caller, &id).await?;
        let wanted = seen.demand(before.updated_at)?;
        let noted = match begun.take() {
            Some(noted) => noted.rebased(&before),
            None => caller.begin(&app, Subject::of(Kind::Account, &id), &before).await?,
        };
        match app.campaigns.delete_account(&id, wanted).await? {
            AccountDeleted::Done => {
                tracing::info!(user = caller.0.user, account = %id, "account deleted");
                return Ok(noted.gone().answer(NoContent));
            }
            AccountDeleted::Changed => begun = Some(noted),
            AccountDeleted::NotFound => return Err(not_found(&id)),
            AccountDeleted::InUse => {
                let detail = "a campaign that is scheduled, running or paused uses the account; \
                     cancel it, or give it another account";
                return Err(Problem::new(Code::InUse, detail));
            }
            AccountDeleted::Permanent => {
                let detail = "the account console is built in: it can be changed, not deleted";
                return Err(Problem::new(Code::BuiltIn, detail));
            }
        }
    }
    Err(Problem::busy("the account"))
}

/// Asks the provider whether it accepts the account. No message is sent.
pub(crate) async fn check(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<AccountId>,
    MaybeBody(form): MaybeBody<NothingForm>,
) -> Result<Audited<Json<AccountCheck>>, Problem> {
    let before = managed(&app, &caller, &id).await?;
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    mistakes.finish(Some(()))?;
    let noted = caller.begin(&app, Subject::of(Kind::Account, &id), &before).await?;
    let checked = app.campaigns.check_account(&id).await?.ok_or_else(|| not_found(&id))?;
    tracing::info!(user = caller.0.user, account = %id, ok = checked.ok, "account checked");
    Ok(noted.after(&checked).answer(Json(checked)))
}

/// The version of an account. When it first sent, and why it is blocked, change by themselves.
fn version(account: &Account) -> Version {
    Version::from(account.updated_at).showing(account)
}

/// The account, if the caller may use it. Who may not learns nothing of it.
async fn find(app: &App, caller: &Principal, id: &AccountId) -> Result<Account, Problem> {
    let found = app.campaigns.account(id).await?;
    let may_use =
        |account: &Account| account.owner.as_ref().is_none_or(|owner| caller.may_read(owner));
    found.filter(may_use).ok_or_else(|| not_found(id))
}

/// The account, if the caller may change it: everybody's accounts are changed by administrators.
async fn managed(app: &App, caller: &Writer, id: &AccountId) -> Result<Account, Problem> {
    let account = find(app, &caller.0, id).await?;
    match account.owner {
        None if caller.0.role != Role::Admin => {
            Err(Problem::forbidden("an account that everybody may use", &[Role::Admin]))
        }
        _ => Ok(account),
    }
}

fn not_found(id: &AccountId) -> Problem {
    Problem::not_found("Account", id)
}

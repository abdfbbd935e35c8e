//! `/api/suppressions`: addresses that get nothing any more. They outlive campaigns and accounts.

use axum::Json;
use axum::extract::State;
use stampede_audit::{Kind, Subject};
use stampede_campaign::{MOST_SUPPRESSIONS, NewSuppressions, Suppressed};
use stampede_model::campaign::{AccountId, SuppressionReason};
use stampede_model::{Principal, Role};
use stampede_store::{Suppression, SuppressionFilter};
use stampede_wire::campaigns::{SuppressionPage, SuppressionsAdded};

use super::words::ReasonWord;
use super::{LONGEST_COUNTRY, invalid, no_such_account};
use crate::app::App;
use crate::auth::{Caller, Writer};
use crate::body::LargeBody;
use crate::describe::NoContent;
use crate::forms::{Flag, Given, List, Mistakes, Parsed, Text, form};
use crate::problem::{Code, FieldError, Problem};
use crate::query::{FromQuery, Params, Query};
use crate::routes::{Paging, invalid_param};
use crate::trace::Audited;

/// Longest address and longest name of a user, in bytes.
const LONGEST_ADDRESS: usize = 1_000;
const LONGEST_USER: usize = 500;

form! {
    /// `POST /api/suppressions`.
    pub(crate) struct SuppressionForm {
        /// The addresses, as people write them.
        addresses: List<Text<LONGEST_ADDRESS>, MOST_SUPPRESSIONS> = "addresses" required,
        /// The account that it holds for; all accounts if absent.
        account_id: Parsed<AccountId> = "accountId",
        /// Why; `manual` if absent.
        reason: Parsed<ReasonWord> = "reason",
        /// The country of telephone numbers without a country's code; the account's if absent.
        country: Text<LONGEST_COUNTRY> = "country",
        /// The user whose accounts it holds for; administrators may name others than themselves.
        owner: Text<LONGEST_USER> = "owner",
        /// Whether it holds for all users, of an account that nobody owns or of all accounts; only administrators may say so.
        shared: Flag = "shared",
    }
}

/// Which suppressed addresses to list.
pub(crate) struct SuppressionListing {
    filter: SuppressionFilter,
    paging: Paging,
}

impl FromQuery for SuppressionListing {
    fn from_query(query: &mut Query) -> Self {
        const RIGHT: &str = "must be stop, bounce, complaint, blocked or manual";
        let account = query.about("Those of this account.");
        let account = account.parsed("account", "must be the id of an account");
        let address = query.about("Exactly this address, normalised.").text("address");
        let reason = query.about("Those for this reason.").word("reason", ReasonWord::WORDS, RIGHT);
        let owner = query.about("Those of this user.").text("owner");
        let reason = reason.and_then(SuppressionReason::from_word);
        let filter = SuppressionFilter { owner, account, address, reason };
        Self { filter, paging: Paging::from_query(query) }
    }
}

/// The suppression to be removed.
pub(crate) struct Removal {
    address: Option<String>,
    account: Option<AccountId>,
    owner: Option<String>,
    is_shared: bool,
}

impl FromQuery for Removal {
    fn from_query(query: &mut Query) -> Self {
        let address = query.about("The address, as the list shows it.").text("address");
        let account =
            query.about("The account that it holds for; if absent, that of all accounts.");
        let account = account.parsed("account", "must be the id of an account");
        let owner = query.about("The user whose it is; your own if absent.").text("owner");
        let shared = query.about("Whether it is the one that holds for all users.");
        let is_shared = shared.flag("shared");
        Self { address, account, owner, is_shared }
    }
}

/// Suppressed addresses that the caller may see.
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(SuppressionListing { mut filter, paging }): Params<SuppressionListing>,
) -> Result<Json<SuppressionPage>, Problem> {
    if let Some(own) = caller.0.visible_owner() {
        let is_foreign = filter.owner.as_ref().is_some_and(|owner| owner != own);
        if is_foreign {
            return Ok(Json(SuppressionPage { suppressions: Vec::new(), next: None }));
        }
        filter.owner = Some(own.to_owned());
    }
    let page = app.campaigns.suppressions(&filter, paging.chosen_after(), paging.limit()).await?;
    page.map(Json).ok_or_else(|| invalid_param("after"))
}

/// Suppresses addresses. Messages that are being sent may still arrive.
pub(crate) async fn add(
    State(app): State<App>,
    caller: Writer,
    LargeBody(form, _held): LargeBody<SuppressionForm>,
) -> Result<Audited<Json<SuppressionsAdded>>, Problem> {
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
    let account = mistakes.value(form.account_id).map(|Parsed(account)| account);
    let reason = mistakes.value(form.reason).map(|Parsed(ReasonWord(reason))| reason);
    let country = mistakes.value(form.country).map(|Text(country)| country);
    let owner = whose(&mut mistakes, &caller.0, form.owner, form.shared);
    let owner = mistakes.finish(Some(owner))?;
    let new = NewSuppressions {
        owner,
        account,
        addresses,
        reason: reason.unwrap_or(SuppressionReason::Manual),
        by: caller.0.user.clone(),
        country,
    };
    let noted = caller.begin_new(&app, Subject::new(Kind::Suppression)).await?;
    let (user, count) = (caller.0.user.clone(), new.addresses.len());
    match app.campaigns.suppress(new).await? {
        Suppressed::Done(added) => {
            tracing::info!(user, addresses = count, added, "addresses suppressed");
            let added = SuppressionsAdded { added };
            Ok(noted.after(&added).answer(Json(added)))
        }
        Suppressed::NoSuchAccount => Err(no_such_account()),
        Suppressed::Invalid(mistakes) => Err(invalid(mistakes)),
    }
}

/// Whose suppressions are added.
fn whose(
    mistakes: &mut Mistakes,
    caller: &Principal,
    owner: Given<Text<LONGEST_USER>>,
    shared: Given<Flag>,
) -> String {
    let owner = mistakes.value(owner).map(|Text(owner)| owner);
    let is_shared = mistakes.value(shared).is_some_and(|Flag(flag)| flag);
    if is_shared && caller.role != Role::Admin {
        mistakes.wrong("shared", "needs the role admin");
    }
    match owner {
        Some(_) if is_shared => mistakes.wrong("owner", "cannot be given together with shared"),
        Some(owner) if owner.is_empty() => mistakes.wrong("owner", "must name a user"),
        Some(owner) if !may_name(caller, &owner) => mistakes.wrong("owner", "must be yourself"),
        Some(owner) => return owner,
        None if is_shared => return Suppression::EVERYBODY.to_owned(),
        None => {}
    }
    caller.user.clone()
}

/// Lets an address get messages again.
pub(crate) async fn remove(
    State(app): State<App>,
    caller: Writer,
    Params(Removal { address, account, owner, is_shared }): Params<Removal>,
) -> Result<Audited<NoContent>, Problem> {
    let Some(address) = address else {
        let missing = FieldError::new("address", "is missing");
        return Err(Problem::listing(Code::InvalidQuery, "in the query, ", vec![missing]));
    };
    let owner = match is_shared {
        true => Suppression::EVERYBODY.to_owned(),
        false => owner.unwrap_or_else(|| caller.0.user.clone()),
    };
    let missing = || Problem::not_found("Suppression", &address);
    if !may_name(&caller.0, &owner) {
        return Err(missing());
    }
    let noted = caller.begin_new(&app, Subject::of(Kind::Suppression, &address)).await?;
    match app.campaigns.unsuppress(&owner, account.as_ref(), &address).await? {
        true => {
            tracing::info!(user = caller.0.user, owner, "suppression removed");
            Ok(noted.gone().answer(NoContent))
        }
        false => Err(missing()),
    }
}

/// Whether a caller may change the list of this user.
fn may_name(caller: &Principal, owner: &str) -> bool {
    caller.role == Role::Admin || caller.user == owner
}

//! `/api/checkin`: scans, undone scans, uploads and bundles of scanners.
//!
//! A scan that was decided is answered with 200, whatever the decision is: `ok` says whether the guest may pass,
//! `result` why not. A mistake of the client, such as an unknown list, is a problem with a `code`.

pub(crate) mod blocks;
pub(crate) mod devices;
pub(crate) mod reports;
pub(crate) mod setup;

use axum::Json;
use axum::extract::State;
use serde_json::json;
use stampede_checkin::{
    BundleRead, MAX_UPLOAD, OfflineScan, Refused, ScanRequest, ShownTicket, UndoRequest, Undoing,
    Upload, WhichScan,
};
use stampede_model::{EventId, GateId, ListId, ScanId, ScanKind, ScanResult, TicketId, Timestamp};
use stampede_wire::checkin::bundle::Bundle;
use stampede_wire::checkin::scans::{Redeemed, Undone, Uploaded};

use crate::app::App;
use crate::auth::Door;
use crate::body::{Body, LargeBody};
use crate::forms::{Flag, Given, IdOf, Line, List, Mistakes, Parsed, Text, Whole, form};
use crate::problem::{Code, FieldError, Problem};
use crate::query::{FromQuery, Params, Query};

/// Longest text that is looked at, in bytes; a genuine token is far shorter.
const LONGEST_TOKEN: usize = 8 << 10;
/// Longest nonce, in bytes.
const LONGEST_NONCE: usize = 64;
/// Longest reason of an undone scan, in characters.
const LONGEST_REASON: usize = 500;

const AN_EVENT: &str = "must be the id of an event";
const A_LIST: &str = "must be the id of a list";
const A_GATE: &str = "must be the id of a gate";
const A_TIME: &str = "must be a time such as 2026-11-21T19:30:00+03:00";

form! {
    /// `POST /api/checkin/redeem`.
    pub(crate) struct RedeemForm {
        /// The text of a ticket's QR code.
        token: Text<LONGEST_TOKEN> = "token",
        /// The id of a ticket, instead of its token.
        ticket: IdOf<TicketId> = "ticketId",
        /// The event at whose door the ticket is shown.
        target: IdOf<EventId> = "target",
        /// The check-in list.
        list: IdOf<ListId> = "list",
        /// The gate.
        gate: IdOf<GateId> = "gate",
        /// Chosen by the client: the same nonce is the same scan.
        nonce: Text<LONGEST_NONCE> = "nonce",
        /// `entry` or `exit`.
        kind: Parsed<ScanKind> = "kind",
        /// The moment by the device's clock.
        at: Parsed<Timestamp> = "at",
        /// Whether nothing is recorded.
        simulate: Flag = "simulate",
    }
}

form! {
    /// `POST /api/checkin/undo`.
    pub(crate) struct UndoForm {
        /// The nonce of the caller's own scan.
        nonce: Text<LONGEST_NONCE> = "nonce",
        /// The id of any scan.
        scan: IdOf<ScanId> = "scan",
        /// Why, for people.
        reason: Line<LONGEST_REASON> = "reason",
    }
}

form! {
    /// `POST /api/checkin/scans`.
    pub(crate) struct UploadForm {
        /// The device's clock.
        device_now: Parsed<Timestamp> = "deviceNow" required,
        /// How many scans the device has not sent yet.
        unsent: Whole = "unsent",
        /// The event, if all scans are for one.
        target: IdOf<EventId> = "target",
        /// The scans.
        scans: List<OfflineForm, MAX_UPLOAD> = "scans" required,
    }
}

form! {
    /// One scan of an upload.
    pub(crate) struct OfflineForm {
        /// Chosen by the client: the same nonce is the same scan.
        nonce: Text<LONGEST_NONCE> = "nonce" required,
        /// The text of a ticket's QR code.
        token: Text<LONGEST_TOKEN> = "token",
        /// The id of a ticket, instead of its token.
        ticket: IdOf<TicketId> = "ticketId",
        /// The check-in list.
        list: IdOf<ListId> = "list",
        /// The gate.
        gate: IdOf<GateId> = "gate",
        /// `entry` or `exit`.
        kind: Parsed<ScanKind> = "kind",
        /// The moment by the device's clock.
        at: Parsed<Timestamp> = "at" required,
        /// Always true.
        offline: Flag = "offline",
        /// What the device decided: `ok`, or the reason of its refusal.
        verdict: Parsed<ScanResult> = "verdict" required,
    }
}

/// Decides a scan and records it.
pub(crate) async fn redeem(
    State(app): State<App>,
    caller: Door,
    Body(form, _held): Body<RedeemForm>,
) -> Result<Json<Redeemed>, Problem> {
    let request = read_redeem(form)?;
    match app.checkin.redeem(&caller.0, request).await? {
        Ok(redeemed) => Ok(Json(redeemed)),
        Err(refused) => Err(refusal(refused, "")),
    }
}

fn read_redeem(form: RedeemForm) -> Result<ScanRequest, Problem> {
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let simulate = mistakes.value(form.simulate).is_some_and(|Flag(simulate)| simulate);
    let nonce = match simulate {
        true => Some(None),
        false => read_nonce(&mut mistakes, form.nonce).map(Some),
    };
    let shown = read_shown(&mut mistakes, form.token, form.ticket);
    let kind = mistakes.value(form.kind).map_or(ScanKind::Entry, |Parsed(kind)| kind);
    let request = ScanRequest {
        target: mistakes.ruled(form.target, AN_EVENT, |IdOf(id)| id),
        list: mistakes.ruled(form.list, A_LIST, |IdOf(id)| id),
        gate: mistakes.ruled(form.gate, A_GATE, |IdOf(id)| id),
        device_at: mistakes.ruled(form.at, A_TIME, |Parsed(at)| Some(at)),
        kind,
        nonce: None,
        shown: ShownTicket::Token(String::new()),
    };
    let (shown, nonce) = mistakes.finish(shown.zip(nonce))?;
    Ok(ScanRequest { shown, nonce, ..request })
}

/// The token or the id of a ticket, exactly one of them.
fn read_shown(
    mistakes: &mut Mistakes,
    token: Given<Text<LONGEST_TOKEN>>,
    ticket: Given<IdOf<TicketId>>,
) -> Option<ShownTicket> {
    let both = token.has_value() && ticket.has_value();
    let neither = !token.has_value() && !ticket.has_value();
    let token = mistakes.value(token).map(|Text(token)| ShownTicket::Token(token));
    let ticket = mistakes.ruled(ticket, "must be the id of a ticket", |IdOf(id)| id);
    if neither {
        mistakes.wrong("token", "is missing: the text of a ticket's QR code, or ticketId");
    } else if both {
        mistakes.wrong("ticketId", "cannot be given together with token");
    }
    token.or(ticket.map(ShownTicket::Id))
}

/// A nonce: visible characters.
fn read_nonce(mistakes: &mut Mistakes, nonce: Given<Text<LONGEST_NONCE>>) -> Option<String> {
    let nonce = mistakes.required_or(nonce, "is missing: a name of this scan, chosen by you")?;
    let Text(nonce) = nonce;
    if nonce.is_empty() || !nonce.bytes().all(|byte| byte.is_ascii_graphic()) {
        mistakes.wrong("nonce", "must have 1 to 64 visible ASCII characters");
        return None;
    }
    Some(nonce)
}

/// Undoes a scan.
pub(crate) async fn undo(
    State(app): State<App>,
    caller: Door,
    Body(form, _held): Body<UndoForm>,
) -> Result<Json<Undone>, Problem> {
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let scan = mistakes.ruled(form.scan, "must be the id of a scan", |IdOf(id)| id);
    let reason = mistakes.value(form.reason).map(|Line(reason)| reason);
    let which = match scan {
        Some(id) => Some(WhichScan::Id(id)),
        None => read_nonce(&mut mistakes, form.nonce).map(WhichScan::Nonce),
    };
    let which = mistakes.finish(which)?;
    let conflict = |code: Code, detail: &str| Err(Problem::new(code, detail));
    match app.checkin.undo(&caller.0, &UndoRequest { which, reason }).await? {
        Undoing::Done(undone) => Ok(Json(*undone)),
        Undoing::NotFound => Err(Problem::new(Code::NotFound, "Scan not found")),
        Undoing::NotYours => {
            conflict(Code::NotYours, "another device made this scan; the organiser can undo it")
        }
        Undoing::TooLate => conflict(
            Code::TooLate,
            "a device can undo its scans for 15 minutes; the organiser can undo this one",
        ),
        Undoing::NothingToUndo => {
            conflict(Code::NothingToUndo, "the scan was refused: nobody passed")
        }
        Undoing::ExitFollows => {
            conflict(Code::ExitFollows, "the guest has left since; undo the exit first")
        }
    }
}

/// Records scans that a device decided without the server.
pub(crate) async fn upload(
    State(app): State<App>,
    caller: Door,
    LargeBody(form, _held): LargeBody<UploadForm>,
) -> Result<Json<Uploaded>, Problem> {
    let upload = read_upload(form)?;
    match app.checkin.upload(&caller.0, upload).await? {
        Ok(uploaded) => Ok(Json(uploaded)),
        Err((index, refused)) => {
            Err(refusal(refused, &format!("scans[{index}].")).with("index", json!(index)))
        }
    }
}

fn read_upload(form: UploadForm) -> Result<Upload, Problem> {
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let target = mistakes.ruled(form.target, AN_EVENT, |IdOf(id)| id);
    let device_now = mistakes.required_or(form.device_now, "is missing: the device's clock");
    let unsent =
        mistakes.ruled(form.unsent, "must be a number of scans", |Whole(n)| u32::try_from(n).ok());
    let list = mistakes.required(form.scans).map(|List(scans)| scans).unwrap_or_default();
    let mut scans = Vec::with_capacity(list.len());
    for (index, scan) in list.into_iter().enumerate() {
        match scan {
            Ok(scan) => {
                let mut own = Mistakes::nested(format!("scans[{index}]."));
                scans.extend(read_offline(&mut own, scan));
                mistakes.absorb(own);
            }
            Err(message) => mistakes.wrong(&format!("scans[{index}]"), message),
        }
    }
    let Parsed(device_now) = mistakes.finish(device_now)?;
    Ok(Upload { device_now, unsent, target, scans })
}

fn read_offline(mistakes: &mut Mistakes, form: OfflineForm) -> Option<OfflineScan> {
    mistakes.only(&form);
    let online = form.offline.value().is_some_and(|Flag(offline)| !offline);
    mistakes.value(form.offline);
    if online {
        mistakes
            .wrong("offline", "must be true; scans with a connection go to /api/checkin/redeem");
    }
    let nonce = read_nonce(mistakes, form.nonce);
    let shown = read_shown(mistakes, form.token, form.ticket);
    let kind = mistakes.value(form.kind).map_or(ScanKind::Entry, |Parsed(kind)| kind);
    let (list, gate) = (
        mistakes.ruled(form.list, A_LIST, |IdOf(id)| id),
        mistakes.ruled(form.gate, A_GATE, |IdOf(id)| id),
    );
    let at = mistakes.required_or(form.at, "is missing: the moment by the device's clock");
    let verdict = mistakes.required_or(form.verdict, "is missing: ok, or the reason of a refusal");
    let (Parsed(at), Parsed(verdict)) = (at?, verdict?);
    let request = ScanRequest {
        shown: shown?,
        target: None,
        list,
        gate,
        nonce: Some(nonce?),
        kind,
        device_at: Some(at),
    };
    Some(OfflineScan { request, verdict })
}

/// `?target=…&since=…` of a bundle.
pub(crate) struct BundleOptions {
    target: Option<EventId>,
    since: Option<u64>,
}

impl FromQuery for BundleOptions {
    fn from_query(query: &mut Query) -> Self {
        Self {
            target: query
                .about("The event; a key that is limited to one needs none.")
                .parsed("target", AN_EVENT),
            since: query
                .about("The seq of a former bundle: only what has changed since.")
                .parsed("since", "must be the seq of a former bundle"),
        }
    }
}

/// Everything that a scanner needs to decide without a network, or what has changed.
pub(crate) async fn bundle(
    State(app): State<App>,
    caller: Door,
    Params(options): Params<BundleOptions>,
) -> Result<Json<Bundle>, Problem> {
    match app.checkin.bundle(&caller.0, options.target, options.since).await? {
        BundleRead::Ready(bundle) => Ok(Json(*bundle)),
        BundleRead::Forbidden => Err(Problem::not_yours()),
        BundleRead::NotFound => Err(Problem::new(Code::NotFound, "Event not found")),
        BundleRead::NoTarget => {
            let detail = "target is missing in the query: this key is not limited to one event";
            Err(Problem::new(Code::InvalidQuery, detail))
        }
    }
}

/// A mistake of the client; `field` leads to the scan.
fn refusal(refused: Refused, path: &str) -> Problem {
    let invalid = |code: Code, field: &str, message: &str| {
        let field = format!("{path}{field}");
        Problem::listing(code, "", vec![FieldError::new(field, message)])
    };
    match refused {
        Refused::Forbidden => Problem::not_yours(),
        Refused::NoSuchEvent => Problem::new(Code::NotFound, "Event not found"),
        Refused::NoSuchList => invalid(Code::UnknownList, "list", "is no list of this event"),
        Refused::NoSuchGate => invalid(Code::UnknownGate, "gate", "is no gate of this event"),
        Refused::NonceUsed => {
            invalid(Code::NonceUsed, "nonce", "was used before for another ticket or direction")
        }
    }
}

//! Devices, their enrolment, and what a key may do at the door.

use axum::Json;
use axum::extract::State;
use stampede_checkin::{DeviceRequest, Enrolment, NewDeviceResult};
use stampede_identity::latest_end;
use stampede_model::{EventId, GateId, KeyId, Limit, ListId, Timestamp};
use stampede_wire::checkin::devices::{Devices, Enrolled, Me, NewDevice};

use super::setup::{managed, readable};
use super::{A_GATE, A_LIST, A_TIME};
use crate::app::{App, now};
use crate::auth::{Anyone, Caller, Door, Writer};
use crate::body::{Body, StrangersBody};
use crate::describe::{Created, NoContent};
use crate::forms::{IdOf, Line, Mistakes, Parsed, Text, form};
use crate::input::Id;
use crate::problem::{Code, Problem};

form! {
    /// `POST /api/events/{id}/devices`.
    pub(crate) struct DeviceForm {
        /// The device's name.
        name: Line<{ Limit::NAME.0 }> = "name" required,
        /// The gate where it stands.
        gate: IdOf<GateId> = "gate",
        /// The list that it scans for.
        list: IdOf<ListId> = "list",
        /// When its key ends.
        expires_at: Parsed<Timestamp> = "expiresAt",
    }
}

form! {
    /// `POST /api/checkin/enrol`.
    pub(crate) struct EnrolForm {
        /// The code that was shown when the device was made.
        code: Text<100> = "code" required,
    }
}

pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<EventId>,
) -> Result<Json<Devices>, Problem> {
    let event = readable(&app, &caller, id).await?;
    Ok(Json(app.checkin.devices(&event).await?))
}

/// Makes a device. Its key and its enrolment code are shown once.
pub(crate) async fn create(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<EventId>,
    Body(form, _held): Body<DeviceForm>,
) -> Result<Created<NewDevice>, Problem> {
    let event = managed(&app, &caller, id).await?;
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let name = mistakes.required(form.name).map(|Line(name)| name);
    let gate = mistakes.ruled(form.gate, A_GATE, |IdOf(id)| id);
    let list = mistakes.ruled(form.list, A_LIST, |IdOf(id)| id);
    let expires_at = mistakes.ruled(form.expires_at, A_TIME, |Parsed(at)| Some(at));
    if expires_at.is_some_and(|at| at <= now()) {
        mistakes.wrong("expiresAt", "must be in the future");
    }
    // A device's key is a key: it must not outlive the one that makes it.
    let own_end = latest_end(&caller.0);
    if let Some(own) = own_end.filter(|own| expires_at.is_some_and(|at| at > *own)) {
        let rule = format!("must not be later than {own}, when your own key ends");
        mistakes.wrong("expiresAt", rule);
    }
    let expires_at = expires_at.or(own_end);
    let name = mistakes.finish(name)?;
    let request = DeviceRequest { name, gate, list, expires_at };
    let mut mistakes = Mistakes::default();
    match app.checkin.create_device(&event, request).await? {
        NewDeviceResult::Made(device) => {
            tracing::info!(event = %id, device = %device.device.id, user = caller.0.user, "device made");
            return Ok(Created(*device));
        }
        NewDeviceResult::NoSuchGate => mistakes.wrong("gate", "is no gate of this event"),
        NewDeviceResult::NoSuchList => mistakes.wrong("list", "is no list of this event"),
    }
    mistakes.finish(None)
}

/// Revokes a device's key: its next request is refused.
pub(crate) async fn revoke(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<KeyId>,
) -> Result<NoContent, Problem> {
    let not_found = || Problem::not_found("Device", &id);
    let device = app.checkin.device(id).await?.ok_or_else(not_found)?;
    managed(&app, &caller, device.event_id).await?;
    app.checkin.revoke_device(id).await?;
    tracing::info!(event = %device.event_id, device = %id, user = caller.0.user, "device revoked");
    Ok(NoContent)
}

/// Gives a device a fresh key for a code that works once.
pub(crate) async fn enrol(
    State(app): State<App>,
    _: Anyone,
    StrangersBody(form, _held): StrangersBody<EnrolForm>,
) -> Result<Json<Enrolled>, Problem> {
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let code = mistakes.required(form.code);
    let Text(code) = mistakes.finish(code)?;
    match app.checkin.enrol(&code).await? {
        Enrolment::Done(enrolled) => Ok(Json(*enrolled)),
        Enrolment::Wrong => {
            let detail = "this code is wrong, was used before, or is older than ten minutes";
            Err(Problem::new(Code::WrongCode, detail))
        }
        Enrolment::TooManyWrong => {
            let detail = "too many wrong codes in the last minute; wait before the next";
            Err(Problem::new(Code::TooManyWrongCodes, detail).retry_after(60))
        }
    }
}

/// What this key may do at the door.
pub(crate) async fn me(State(app): State<App>, caller: Door) -> Result<Json<Me>, Problem> {
    Ok(Json(app.checkin.me(&caller.0).await?))
}

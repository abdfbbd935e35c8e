//! Devices, their enrolment, and what a key may do at the door.

use axum::Json;
use axum::extract::State;
use stampede_checkin::{DeviceRequest, Enrolment, NewDeviceResult, Written};
use stampede_identity::latest_end;
use stampede_model::{EventId, GateId, KeyId, Limit, ListId, Principal, Role, Timestamp};
use stampede_wire::Paged;
use stampede_wire::checkin::devices::{Device, Devices, Enrolled, Me, NewDevice};

use super::setup::{managed, readable, written};
use super::{A_GATE, A_LIST, A_TIME};
use crate::app::{App, now};
use crate::auth::{Anyone, Caller, Door, Writer};
use crate::body::{Body, StrangersBody};
use crate::describe::{Created, Located, NoContent};
use crate::forms::{IdOf, Line, Mistakes, Parsed, Text, form};
use crate::input::Id;
use crate::page::Page;
use crate::problem::{Code, Problem};
use crate::query::Params;
use crate::routes::CHANGE_TRIES;
use crate::trace::{Audited, Change, json};
use crate::version::{Fresh, IfMatch, IfNoneMatch, Tagged, Version};
use stampede_audit::{Kind, Subject};

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
        /// A random text of 16 to 100 characters: the same code and nonce get the same key again for ten minutes, if the
        /// answer was lost.
        nonce: Text<100> = "nonce",
    }
}

/// Fewest characters of a nonce.
const SHORTEST_NONCE: usize = 16;

pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<EventId>,
    Params(page): Params<Page>,
) -> Result<Json<Paged<Devices>>, Problem> {
    let event = readable(&app, &caller, id).await?;
    let devices = app.checkin.devices(&event).await?.devices;
    Ok(Json(page.cut(devices, |device| device.id.to_string(), |devices| Devices { devices })))
}

pub(crate) async fn read(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<KeyId>,
    known: IfNoneMatch,
) -> Result<Fresh<Json<Device>>, Problem> {
    let device = app.checkin.device(id).await?.ok_or_else(|| Problem::not_found("Device", &id))?;
    let read = readable(&app, &caller, device.target).await;
    read.map_err(|refused| refused.hiding("Device", &id))?;
    Ok(known.answer(version(&device), Json(device)))
}

/// The version of a device. When it was last seen changes by itself.
fn version(device: &Device) -> Version {
    Version::from(device.updated_at).showing(device)
}

/// Makes a device. Its key and its enrolment code are shown once.
pub(crate) async fn create(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<EventId>,
    Body(form, _held): Body<DeviceForm>,
) -> Result<Audited<Tagged<Located<Created<NewDevice>>>>, Problem> {
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
    let begun = caller.begin_new(&app, Subject::new(Kind::Device).at(id)).await?;
    match app.checkin.create_device(&event, request).await? {
        NewDeviceResult::Made(device) => {
            tracing::info!(event = %id, device = %device.device.id, user = caller.0.user, "device made");
            let version = version(&device.device);
            let made = begun.after(&device.device);
            let path = format!("/api/devices/{}", device.device.id);
            return Ok(made.answer(Tagged::new(version, Located(path, Created(*device)))));
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
    wanted: IfMatch,
) -> Result<Audited<NoContent>, Problem> {
    let mut begun: Option<Change> = None;
    for _ in 0..CHANGE_TRIES {
        let device = app.checkin.device(id).await?;
        let device = device.ok_or_else(|| Problem::not_found("Device", &id))?;
        let may = managed(&app, &caller, device.target).await;
        may.map_err(|refused| refused.hiding("Device", &id))?;
        let seen = wanted.demand(device.updated_at)?;
        let subject = Subject::of(Kind::Device, id).at(device.target);
        let noted = match begun.take() {
            Some(noted) => noted.rebased(&device),
            None => caller.begin(&app, subject, &device).await?,
        };
        match app.checkin.revoke_device(id, seen).await? {
            Written::ChangedMeanwhile => begun = Some(noted),
            revoked => {
                written(revoked, "Device", &id)?;
                tracing::info!(event = %device.target, device = %id, user = caller.0.user, "device revoked");
                let after = app.checkin.device(id).await?;
                return Ok(noted.after(&after).answer(NoContent));
            }
        }
    }
    Err(Problem::busy("the device"))
}

/// Gives a device a fresh key for a code that works once.
pub(crate) async fn enrol(
    State(app): State<App>,
    stranger: Anyone,
    StrangersBody(form, _held): StrangersBody<EnrolForm>,
) -> Result<Audited<Json<Enrolled>>, Problem> {
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let code = mistakes.required(form.code);
    let nonce = mistakes.read(form.nonce, |Text(nonce)| match nonce.len() >= SHORTEST_NONCE {
        true => Ok(nonce),
        false => Err("must have at least 16 characters"),
    });
    let Text(code) = mistakes.finish(code)?;
    // A wrong code changes nothing, and strangers may send many.
    let noted = match app.checkin.device_of_code(&code).await? {
        Some((device, owner)) => {
            let who = Principal { key: Some(device.id), ..Principal::new(owner, Role::Scanner) };
            stranger.0.known(&who);
            let subject = Subject::of(Kind::Device, device.id).at(device.target);
            Some(stranger.0.begin(&app, subject, json(&device)).await?)
        }
        None => None,
    };
    match (app.checkin.enrol(&code, nonce.as_deref()).await?, noted) {
        (Enrolment::Done(enrolled), Some(noted)) => {
            Ok(noted.after(&enrolled.device).answer(Json(*enrolled)))
        }
        (Enrolment::Again(enrolled), _) => Ok(Audited::without_change(Json(*enrolled))),
        // The code began to work between the two looks at it, which codes never do.
        (Enrolment::Done(_), None) => Err(Problem::internal(&"an enrolment without an entry")),
        (Enrolment::Wrong, _) => {
            let detail = "this code is wrong, was used before, or is older than ten minutes";
            Err(Problem::new(Code::WrongCode, detail))
        }
        (Enrolment::TooManyWrong, _) => {
            let detail = "too many wrong codes in the last minute; wait before the next";
            Err(Problem::new(Code::TooManyWrongCodes, detail).retry_after(60))
        }
    }
}

/// What this key may do at the door.
pub(crate) async fn me(State(app): State<App>, caller: Door) -> Result<Json<Me>, Problem> {
    Ok(Json(app.checkin.me(&caller.0).await?))
}

//! Reads domain values from rows. A value that this program never writes becomes an error that names
//! its column and record, never a panic.

use std::fmt::Display;
use std::str::FromStr;

use sqlx::any::AnyRow;
use sqlx::{Any, Decode, Row, Type};
use stampede_model::{
    Batch, Branding, Event, EventDetails, Holder, Money, Pdf, Principal, PublicKey, Scope,
    Template, TemplateChoice, TemplateRevision, Ticket, TicketStatus, Timestamp,
};

/// The columns [`event`] reads.
pub(super) const EVENT: &str = "id, owner, name, location, starts_at, time_zone, currency, \
     primary_color, secondary_color, lang, template_design, template_id, template_revision, \
     created_at, updated_at";

/// The columns [`batch`] reads.
pub(super) const BATCH: &str =
    "id, event_id, owner, total, completed, failed, voided, revision, created_at, updated_at";

/// The columns [`template`] reads.
pub(super) const TEMPLATE: &str = "id, owner, name, revision, created_at, updated_at";

/// The columns [`template_revision`] reads.
pub(super) const TEMPLATE_REVISION: &str =
    "template_id AS id, number, hash, size, author, note, created_at";

/// The columns [`ticket`] reads.
pub(super) const TICKET: &str = "id, event_id, batch_id, owner, position, serial, \
     generation, signing_key, name, email, phone, chat, seat, price_amount, price_currency, status, error, pdf_fingerprint, pdf_size, pdf_checksum, \
     processed_by, processed_at, created_at, updated_at";

/// Reads the columns [`EVENT`].
pub(super) fn event(row: &AnyRow) -> sqlx::Result<Event> {
    Ok(Event {
        id: parsed(row, "id")?,
        owner: value(row, "owner")?,
        details: EventDetails {
            name: value(row, "name")?,
            location: value(row, "location")?,
            starts_at: optional_time(row, "starts_at")?,
            time_zone: value(row, "time_zone")?,
            currency: parsed(row, "currency")?,
            branding: Branding {
                primary: parsed(row, "primary_color")?,
                secondary: parsed(row, "secondary_color")?,
            },
            lang: optional_parsed(row, "lang")?,
            template: template_choice(row)?,
        },
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
    })
}

/// Reads the columns [`BATCH`].
pub(super) fn batch(row: &AnyRow) -> sqlx::Result<Batch> {
    Ok(Batch {
        id: parsed(row, "id")?,
        event_id: parsed(row, "event_id")?,
        owner: value(row, "owner")?,
        total: number(row, "total")?,
        completed: number(row, "completed")?,
        failed: number(row, "failed")?,
        voided: number(row, "voided")?,
        revision: number(row, "revision")?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
    })
}

/// Reads the columns [`TEMPLATE`].
pub(super) fn template(row: &AnyRow) -> sqlx::Result<Template> {
    Ok(Template {
        id: parsed(row, "id")?,
        owner: value(row, "owner")?,
        name: value(row, "name")?,
        revision: number(row, "revision")?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
    })
}

/// Reads the columns [`TEMPLATE_REVISION`].
pub(super) fn template_revision(row: &AnyRow) -> sqlx::Result<TemplateRevision> {
    Ok(TemplateRevision {
        number: number(row, "number")?,
        hash: value(row, "hash")?,
        size: number(row, "size")?,
        author: value(row, "author")?,
        note: value(row, "note")?,
        created_at: time(row, "created_at")?,
    })
}

/// Reads the columns [`TICKET`].
pub(super) fn ticket(row: &AnyRow) -> sqlx::Result<Ticket> {
    let status: String = value(row, "status")?;
    Ok(Ticket {
        id: parsed(row, "id")?,
        event_id: parsed(row, "event_id")?,
        batch_id: parsed(row, "batch_id")?,
        owner: value(row, "owner")?,
        index: number(row, "position")?,
        serial: number(row, "serial")?,
        generation: number(row, "generation")?,
        signing_key: signing_key(row)?,
        holder: Holder {
            name: value(row, "name")?,
            email: value(row, "email")?,
            phone: value(row, "phone")?,
            chat: value(row, "chat")?,
            seat: value(row, "seat")?,
        },
        price: price(row)?,
        status: TicketStatus::from_word(&status)
            .ok_or_else(|| damaged(row, "status", format!("{status:?} is not a status")))?,
        error: value(row, "error")?,
        pdf: pdf(row)?,
        processed_by: value(row, "processed_by")?,
        processed_at: optional_time(row, "processed_at")?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
    })
}

/// Reads the columns `id`, `owner`, `role`, `event_id`, `queues` and `expires_at` of a key.
pub(super) fn principal(row: &AnyRow) -> sqlx::Result<Principal> {
    Ok(Principal {
        user: value(row, "owner")?,
        role: parsed(row, "role")?,
        key: Some(parsed(row, "id")?),
        scope: scope(row)?,
        expires_at: optional_time(row, "expires_at")?,
    })
}

fn scope(row: &AnyRow) -> sqlx::Result<Scope> {
    let event: Option<String> = value(row, "event_id")?;
    let queues: Option<String> = value(row, "queues")?;
    Ok(Scope {
        event: event
            .map(|id| id.parse())
            .transpose()
            .map_err(|error| damaged(row, "event_id", error))?,
        queues: queues
            .map(|names| serde_json::from_str(&names))
            .transpose()
            .map_err(|error| damaged(row, "queues", error))?,
    })
}

/// Reads the columns `number`, `public_key`, `created_at` and `revoked_at` of a ticket key.
pub(super) fn public_key(row: &AnyRow) -> sqlx::Result<PublicKey> {
    let text: String = value(row, "public_key")?;
    let mut bytes = [0; 32];
    hex::decode_to_slice(&text, &mut bytes).map_err(|error| damaged(row, "public_key", error))?;
    let (created_at, revoked_at) = (time(row, "created_at")?, optional_time(row, "revoked_at")?);
    PublicKey::new(number(row, "number")?, &bytes, created_at, revoked_at)
        .ok_or_else(|| damaged(row, "public_key", "not an Ed25519 key"))
}

/// Reads one text column that holds an id, a currency, a colour or a role.
pub(super) fn parsed<T: FromStr<Err: Display>>(row: &AnyRow, column: &str) -> sqlx::Result<T> {
    let text: String = value(row, column)?;
    text.parse().map_err(|error| damaged(row, column, error))
}

/// Reads one value that is kept as text, if there is one.
pub(super) fn optional_parsed<T: FromStr<Err: Display>>(
    row: &AnyRow,
    column: &str,
) -> sqlx::Result<Option<T>> {
    let text: Option<String> = value(row, column)?;
    text.map(|text| text.parse().map_err(|error| damaged(row, column, error))).transpose()
}

/// Reads one whole number.
pub(super) fn number<T: TryFrom<i64, Error: Display>>(
    row: &AnyRow,
    column: &str,
) -> sqlx::Result<T> {
    let number: i64 = value(row, column)?;
    T::try_from(number).map_err(|error| damaged(row, column, format!("{number}: {error}")))
}

fn template_choice(row: &AnyRow) -> sqlx::Result<Option<TemplateChoice>> {
    if value::<Option<String>>(row, "template_id")?.is_none() {
        return Ok(value::<Option<String>>(row, "template_design")?.map(TemplateChoice::Shipped));
    }
    let revision = match value::<Option<i64>>(row, "template_revision")? {
        Some(_) => Some(number(row, "template_revision")?),
        None => None,
    };
    Ok(Some(TemplateChoice::Own { id: parsed(row, "template_id")?, revision }))
}

fn signing_key(row: &AnyRow) -> sqlx::Result<Option<u32>> {
    match value::<Option<i64>>(row, "signing_key")? {
        Some(_) => number(row, "signing_key").map(Some),
        None => Ok(None),
    }
}

fn price(row: &AnyRow) -> sqlx::Result<Option<Money>> {
    let Some(amount) = value::<Option<String>>(row, "price_amount")? else { return Ok(None) };
    Money::parse(&amount, parsed(row, "price_currency")?)
        .map(Some)
        .map_err(|error| damaged(row, "price_amount", format!("{amount:?} {error}")))
}

fn pdf(row: &AnyRow) -> sqlx::Result<Option<Pdf>> {
    let Some(fingerprint) = value(row, "pdf_fingerprint")? else { return Ok(None) };
    let (size, checksum) = (number(row, "pdf_size")?, value(row, "pdf_checksum")?);
    Ok(Some(Pdf { fingerprint, size, checksum }))
}

pub(super) fn time(row: &AnyRow, column: &str) -> sqlx::Result<Timestamp> {
    let ms: i64 = value(row, column)?;
    Timestamp::from_millisecond(ms).map_err(|error| damaged(row, column, error))
}

pub(super) fn optional_time(row: &AnyRow, column: &str) -> sqlx::Result<Option<Timestamp>> {
    match value::<Option<i64>>(row, column)? {
        Some(_) => time(row, column).map(Some),
        None => Ok(None),
    }
}

pub(super) fn value<'r, T: Decode<'r, Any> + Type<Any>>(
    row: &'r AnyRow,
    column: &str,
) -> sqlx::Result<T> {
    row.try_get(column)
}

pub(super) fn damaged(row: &AnyRow, column: &str, reason: impl Display) -> sqlx::Error {
    let id: String = row.try_get("id").unwrap_or_else(|_| "unknown".to_owned());
    let source = format!("record {id}: {reason}").into();
    sqlx::Error::ColumnDecode { index: column.to_owned(), source }
}

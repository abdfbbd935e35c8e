//! `POST /api/events/{id}/batches`: a file of guests becomes a batch of tickets.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use stampede_broker::kept;
use stampede_guests::{Charset, Defaults, Delimiter, Format, Guest, Mistake};
use stampede_model::{Currency, Event, EventId, Idempotency, Limit, Money, check_text};
use stampede_ticketing::{Purpose, Strictness, UploadRead, UploadRequest, Uploaded};
use stampede_wire::ticketing::uploads::{
    UploadAccepted, UploadColumn, UploadDryRun, UploadFormat, UploadRow,
};

use crate::app::App;
use crate::auth::Writer;
use crate::body::Upload;
use crate::describe::{Accepted, Either, Located};
use crate::forms::{Amount, Contact, Email, Flag, Line, Quantity, form};
use crate::headers::IdempotencyKey;
use crate::input::Id;
use crate::problem::{Code, FieldError, Problem};
use crate::query::{FromQuery, Params, Query};
use crate::routes::events;
use crate::routes::orders::Holders;
use crate::trace::Audited;
use stampede_audit::{Kind, Subject};

form! {
    /// `POST /api/events/{id}/batches` as JSON.
    pub(crate) struct UploadForm (lenient) {
        /// One holder for each ticket.
        holders: Holders = "holders",
        /// The holder's name, if there are no `holders`.
        name: Line<{ Limit::NAME.0 }> = "name",
        /// The number of tickets, if there are no `holders`; 1 if absent.
        quantity: Quantity = "quantity",
        /// The address of holders who have none.
        email: Email = "email",
        /// The telephone number of holders who have none.
        phone: Contact = "phoneNumber",
        /// The chat of Telegram of holders who have none.
        chat: Contact = "chatId",
        /// Seat, row or class of holders who have none.
        seat: Line<{ Limit::SEAT.0 }> = "seat",
        /// The price of holders who have none.
        price: Amount = "price",
        /// Whether warnings refuse the order.
        strict: Flag = "strict",
    }
}

/// The words for delimiters.
const DELIMITERS: [&str; 6] = ["comma", "semicolon", "tab", ",", ";", "\t"];

/// How a file is read, and what it is for.
pub(crate) struct Options {
    delimiter: Option<Delimiter>,
    seat: Option<String>,
    price: Option<String>,
    strict: bool,
    dry_run: bool,
}

impl FromQuery for Options {
    fn from_query(query: &mut Query) -> Self {
        const RIGHT: &str = "must be comma, semicolon or tab";
        let delimiter = query.about("The delimiter of a CSV file; found by looking if absent.");
        let delimiter = delimiter.word("delimiter", &DELIMITERS, RIGHT);
        let seat = query.about("Seat, row or class of guests who have none.").text("seat");
        let price = query.about("Price of guests who have none.").text("price");
        let strict = query.about("Whether warnings refuse the order.").flag("strict");
        query.about("Tells what the upload would do, and writes nothing.");
        let dry_run = query.is_bare("dryRun") | query.flag("dryRun");
        Self { delimiter: delimiter.and_then(Delimiter::from_word), seat, price, strict, dry_run }
    }
}

impl Options {
    /// The values for all guests, or 400 with all mistakes.
    fn defaults(&self, currency: Currency) -> Result<Defaults, Problem> {
        let mut errors = Vec::new();
        let mut wrong = |name: &str, message: String| errors.push(FieldError::new(name, message));
        let seat = self.seat.as_deref().map(|seat| check_text(seat, Limit::SEAT));
        let seat = seat.transpose().unwrap_or_else(|error| {
            wrong("seat", error.to_string());
            None
        });
        let price = self.price.as_deref().map(|price| Money::parse(price, currency));
        let price = price.transpose().unwrap_or_else(|error| {
            wrong("price", error.to_string());
            None
        });
        match errors.is_empty() {
            true => Ok(Defaults { seat, price, ..Defaults::default() }),
            false => Err(Problem::listing(Code::InvalidQuery, "in the query, ", errors)),
        }
    }

    /// What makes two uploads of the same bytes different orders.
    fn fingerprint(
        &self,
        event: EventId,
        format: UploadFormat,
        charset: Option<Charset>,
        hash: &str,
    ) -> String {
        let options = (event, self.delimiter.map(Delimiter::as_str), self.strict);
        let charset = charset.map(Charset::name);
        let text = format!("{options:?} {charset:?} {:?} {:?}", self.seat, self.price);
        format!("upload {} {hash} {text}", format.as_str())
    }
}

pub(crate) async fn create(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<EventId>,
    Params(options): Params<Options>,
    IdempotencyKey(key): IdempotencyKey,
    upload: Upload,
) -> Result<Audited<Either<Located<Accepted<UploadAccepted>>, Json<UploadDryRun>>>, Problem> {
    // Before the file arrives: who may not order, or with a mistake in the query, need not send it.
    let event = events::find(&app, id).await?;
    caller.must_change(&event.owner)?;
    options.defaults(event.details.currency)?;
    let (format, charset, credentials) =
        (upload.format, upload.charset, upload.credentials.clone());
    let received = upload.receive(&app).await?;
    // A file may take long to arrive: meanwhile the key may be revoked, and the event may have another currency.
    credentials.check_again(&app, &caller).await?;
    let event = events::find(&app, id).await?;
    caller.must_change(&event.owner)?;
    let currency = event.details.currency;
    let defaults = options.defaults(currency)?;
    let request = options.fingerprint(event.id, format, charset, &received.hash);
    let request = UploadRequest {
        idempotency: key.map(|key| Idempotency { key, request }),
        ..of_file(event, received.file, &options, defaults, format)
    };
    let request = UploadRequest { charset, ..request };
    let subject = Subject::new(Kind::Batch).at(id);
    let entry = caller.trace().entry_of_transaction(&subject, StatusCode::ACCEPTED);
    let request = UploadRequest { entry: entry.filter(|_| !options.dry_run), ..request };
    let (ticketing, spool, place) =
        (app.ticketing.clone(), app.uploads.spool().clone(), received.place);
    // The upload is read and placed to its end, also if the client hangs up; so long it keeps its place.
    let uploading = tokio::spawn(kept(async move {
        let _place = place;
        ticketing.upload(&spool, request).await
    }));
    match uploading.await.map_err(|error| Problem::internal(&error))?? {
        Uploaded::Accepted { batch_id, total, read } => {
            let accepted = UploadAccepted {
                success: true,
                batch_id,
                total,
                tickets_url: format!("/api/tickets?batch={batch_id}"),
                warnings: read.warnings,
            };
            let location = format!("/api/batches/{batch_id}");
            let answer = Either::One(Located(location, Accepted(accepted)));
            Ok(Audited::by_transaction(answer))
        }
        Uploaded::DryRun { accepted, read } => {
            let told = dry_run(accepted, read, format, currency);
            Ok(Audited::without_change(Either::Other(Json(told))))
        }
        Uploaded::Unreadable(why) => Err(Problem::new(Code::UnreadableFile, why)),
        Uploaded::NotJson(why) => Err(Problem::new(Code::InvalidJson, why)),
        Uploaded::Mistaken(read) => Err(mistaken(read)),
        Uploaded::RefusedByWarnings(read) => Err(Problem::has_warnings(read.warnings)),
        Uploaded::KeyOfAnotherOrder => Err(Problem::new(
            Code::KeyReused,
            "this Idempotency-Key was used for another order; a new order needs a new key",
        )),
        Uploaded::NoSuchEvent => Err(Problem::not_found("Event", &id)),
    }
}

fn of_file(
    event: Event,
    file: std::fs::File,
    options: &Options,
    defaults: Defaults,
    format: UploadFormat,
) -> UploadRequest {
    UploadRequest {
        event,
        file,
        format: match format {
            UploadFormat::Csv => Format::Csv(options.delimiter),
            UploadFormat::Ndjson => Format::Ndjson,
            UploadFormat::Json => Format::Json,
        },
        charset: None,
        defaults,
        strictness: if options.strict { Strictness::Strict } else { Strictness::Lenient },
        idempotency: None,
        purpose: if options.dry_run { Purpose::DryRun } else { Purpose::Order },
        entry: None,
    }
}

/// 422 with the first thousand mistakes, and the number of all.
fn mistaken(read: UploadRead) -> Problem {
    let mistakes = read.report.mistakes;
    let (count, good) = (mistakes.count, read.report.guests);
    let errors: Vec<FieldError> = mistakes.listed.into_iter().map(told).collect();
    let place = format!("nothing was ordered: {count} mistakes, and {good} rows without; ");
    let problem = Problem::listing(Code::InvalidRows, &place, errors);
    problem.with("errorCount", count.into())
}

fn told(mistake: Mistake) -> FieldError {
    FieldError { line: mistake.line, ..FieldError::new(mistake.field, mistake.message) }
}

fn dry_run(
    accepted: bool,
    read: UploadRead,
    format: UploadFormat,
    currency: Currency,
) -> UploadDryRun {
    let report = read.report;
    let row = |guest: Guest| {
        let Guest { line, name, email, phone, chat, seat, price } = guest;
        UploadRow { line, name, email, phone_number: phone, chat_id: chat, seat, price }
    };
    let column = |column: stampede_guests::Column| UploadColumn {
        name: column.name,
        field: column.field.map(str::to_owned),
    };
    UploadDryRun {
        dry_run: true,
        accepted,
        total: report.guests as u64,
        total_price: read.price.map(Money::amount),
        currency,
        format,
        encoding: report.encoding.to_owned(),
        delimiter: report.delimiter.map(|delimiter| delimiter.as_str().to_owned()),
        columns: report.columns.into_iter().map(column).collect(),
        rows: read.first.into_iter().map(row).collect(),
        errors: report.mistakes.listed.into_iter().map(told).collect(),
        error_count: report.mistakes.count,
        warnings: read.warnings,
    }
}

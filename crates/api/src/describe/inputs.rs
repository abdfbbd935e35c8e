//! Ids, queries, headers and bodies, as parts of an operation.

use std::str::FromStr;

use schemars::JsonSchema;

use super::Input;
use super::operation::{Operation, Place, Segment};
use crate::body::{Body, ComparedBody, LargeBody, MaybeBody, StrangersBody, UPLOAD_TYPES, Upload};
use crate::forms::Form;
use crate::headers::{IdempotencyKey, MAX_KEY};
use crate::idempotency::Repeats;
use crate::input::{Id, Ids, Names};
use crate::problem::Code;
use crate::query::{FromQuery, Params, described};
use crate::ranges::Wanted;
use crate::routes::uploads::UploadForm;
use crate::version::{IfMatch, IfNoneMatch};

/// Problems of a body.
const BODY: [Code; 9] = [
    Code::BadRequest,
    Code::InvalidJson,
    Code::BodyTimeout,
    Code::TooLarge,
    Code::UnsupportedMediaType,
    Code::Invalid,
    Code::InvalidFields,
    Code::RateLimited,
    Code::Overloaded,
];

fn body<F: Form>(operation: &mut Operation<'_>, required: bool) {
    operation.body::<F>(required);
    operation.may_refuse(&BODY);
}

impl<F: Form> Input for Body<F> {
    fn describe(operation: &mut Operation<'_>) {
        body::<F>(operation, true);
    }
}

impl<F: Form> Input for StrangersBody<F> {
    fn describe(operation: &mut Operation<'_>) {
        body::<F>(operation, true);
    }
}

impl<F: Form> Input for LargeBody<F> {
    fn describe(operation: &mut Operation<'_>) {
        body::<F>(operation, true);
    }
}

impl<F: Form> Input for ComparedBody<F> {
    fn describe(operation: &mut Operation<'_>) {
        body::<F>(operation, true);
    }
}

impl<F: Form> Input for MaybeBody<F> {
    fn describe(operation: &mut Operation<'_>) {
        body::<F>(operation, false);
    }
}

impl Input for Upload {
    fn describe(operation: &mut Operation<'_>) {
        let json = operation.schema::<UploadForm>();
        let text = schemars::json_schema!({ "type": "string" });
        let schema =
            |kind: &str| if kind == "application/json" { json.clone() } else { text.clone() };
        operation.bodies(UPLOAD_TYPES.iter().map(|(kind, _)| (*kind, schema(kind))));
        operation.may_refuse(&BODY);
        operation.may_refuse(&[Code::UnreadableFile, Code::InvalidRows]);
    }
}

impl<T: PathPart> Input for Id<T> {
    fn describe(operation: &mut Operation<'_>) {
        operation.segment::<T>(T::SEGMENT);
    }
}

impl<A: PathPart, B: PathPart> Input for Ids<A, B> {
    fn describe(operation: &mut Operation<'_>) {
        operation.segment::<A>(A::SEGMENT);
        operation.segment::<B>(B::SEGMENT);
    }
}

impl Input for Names {
    fn describe(operation: &mut Operation<'_>) {
        for _ in 0..3 {
            operation.segment::<String>(Segment::Name);
        }
    }
}

impl<T: FromQuery> Input for Params<T> {
    fn describe(operation: &mut Operation<'_>) {
        for asked in described::<T>() {
            let schema = asked.schema(operation);
            operation.parameter(Place::Query, asked.name, asked.about, schema);
        }
        operation.may_refuse(&[Code::InvalidQuery]);
    }
}

impl Input for IdempotencyKey {
    fn describe(operation: &mut Operation<'_>) {
        key(
            operation,
            "A request with the same key and body is carried out once and answered again.",
        );
        operation.may_refuse(&[Code::InvalidHeader, Code::KeyReused]);
    }
}

impl Input for Wanted {
    fn describe(operation: &mut Operation<'_>) {
        let text = || schemars::json_schema!({ "type": "string" });
        let about = "The part of the file that is wanted, such as `bytes=1000-`; one range.";
        operation.parameter(Place::Header, "Range", about, text());
        let about = "The `ETag` of the version whose part is wanted; the whole file if there is another one.";
        operation.parameter(Place::Header, "If-Range", about, text());
        operation.may_refuse(&[Code::RangeNotSatisfiable]);
        <IfNoneMatch as Input>::describe(operation);
    }
}

impl Operation<'_> {
    /// The problems of every body.
    pub(crate) fn may_refuse_body(&mut self) {
        self.may_refuse(&BODY);
    }
}

/// The header `Idempotency-Key`, which is checked.
fn key(operation: &mut Operation<'_>, about: &str) {
    let schema = schemars::json_schema!({
        "type": "string", "minLength": 1, "maxLength": MAX_KEY, "pattern": "^[!-~]+$",
    });
    operation.parameter(Place::Header, "Idempotency-Key", about, schema);
}

/// The header `Idempotency-Key`, which may be any text.
fn ignored_key(operation: &mut Operation<'_>) {
    let about = "Has no effect: the request is carried out again.";
    let schema = schemars::json_schema!({ "type": "string" });
    operation.parameter(Place::Header, "Idempotency-Key", about, schema);
}

impl Operation<'_> {
    /// How the operation treats an `Idempotency-Key` that its handler does not take.
    pub(crate) fn repeats(&mut self, repeats: Repeats) {
        match repeats {
            Repeats::OfHandler => {}
            Repeats::RunAgain => ignored_key(self),
            Repeats::AnsweredAgain => {
                key(
                    self,
                    "A request with the same key, path and body is carried out once and answered again for 24 hours.",
                );
                let about = "`true` if the answer is that of an earlier request.";
                self.answers_with_header("Idempotency-Replayed", about);
                self.may_refuse(&[Code::InvalidHeader, Code::KeyReused, Code::InFlight]);
                self.may_refuse(&[Code::AnswerNotKept, Code::BadRequest, Code::BodyTimeout]);
                self.may_refuse(&[Code::TooLarge]);
            }
        }
    }
}

impl Input for IfMatch {
    fn describe(operation: &mut Operation<'_>) {
        let about = "The `ETag` of the version that is to be changed; 412 if it is not the latest. \
            `*` stands for any version of a record that exists.";
        let schema = schemars::json_schema!({ "type": "string", "examples": ["\"3\""] });
        operation.parameter(Place::Header, "If-Match", about, schema);
        operation.may_refuse(&[Code::PreconditionFailed]);
    }
}

impl Input for IfNoneMatch {
    fn describe(operation: &mut Operation<'_>) {
        let about = "The `ETag` of a version that the client has; 304 if it is still the latest.";
        let schema = schemars::json_schema!({ "type": "string" });
        operation.parameter(Place::Header, "If-None-Match", about, schema);
        operation.answers(304, "The client has it already.", None);
    }
}

/// A parameter of a path.
pub(crate) trait PathPart: FromStr + JsonSchema + Send {
    /// What it may be.
    const SEGMENT: Segment = Segment::Id;
}

impl PathPart for stampede_model::EventId {}
impl PathPart for stampede_model::TicketId {}
impl PathPart for stampede_model::BatchId {}
impl PathPart for stampede_model::TemplateId {}
impl PathPart for stampede_model::ListId {}
impl PathPart for stampede_model::GateId {}
impl PathPart for stampede_model::KeyId {}
impl PathPart for stampede_model::WebhookId {}
impl PathPart for stampede_model::DeliveryId {}
impl PathPart for stampede_model::AuditId {}
impl PathPart for stampede_model::CampaignId {}
impl PathPart for stampede_model::RecipientId {}
impl PathPart for stampede_model::campaign::AccountId {}
impl PathPart for crate::routes::stickers::FileName {}
impl PathPart for u32 {}
impl PathPart for crate::routes::templates::Named {}

impl PathPart for String {
    const SEGMENT: Segment = Segment::Name;
}

//! The choice of a template for an event: an id or a design's name, or an object with it and a revision.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::MapAccess;
use serde_json::Number;
use stampede_model::{Principal, TemplateChoice, TemplateId};

use crate::app::App;
use crate::forms::{Form, Mistakes, Part, Reading, Text, form, inline_schema, read_form};
use crate::unknown;

/// A template as an event names it.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    id: String,
    revision: Option<u32>,
}

form! {
    /// `{"id": …, "revision": …}`.
    struct ChoiceForm {
        /// The id of a template, or the name of a design.
        id: Text<200> = "id" required,
        /// The revision; the latest if absent.
        revision: Revision = "revision",
    }
}

/// The number of a revision; `None`: the latest.
#[derive(Debug, Clone, Copy)]
struct Revision(Option<u32>);

impl JsonSchema for Revision {
    inline_schema!(
        "RevisionNumber",
        json_schema!({
            "anyOf": [{ "type": "integer", "minimum": 0, "maximum": u32::MAX }, { "const": "latest" }],
        })
    );
}

impl Part for Revision {
    const EXPECTED: &'static str = "must be a number, or \"latest\"";

    fn text(text: &str) -> Result<Self, String> {
        if text == "latest" { Ok(Self(None)) } else { Err(Self::EXPECTED.to_owned()) }
    }

    fn number(number: Number) -> Result<Self, String> {
        let number = number.as_u64().and_then(|number| u32::try_from(number).ok());
        number.map(|number| Self(Some(number))).ok_or_else(|| Self::EXPECTED.to_owned())
    }
}

impl JsonSchema for Choice {
    fn schema_name() -> Cow<'static, str> {
        "TemplateChoice".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let object = schemas.subschema_for::<ChoiceForm>();
        json_schema!({ "anyOf": [{ "type": "string", "maxLength": 200 }, object] })
    }
}

impl Part for Choice {
    const EXPECTED: &'static str = "must be an id, or an object with one";

    fn text(text: &str) -> Result<Self, String> {
        let Text(id) = Text::<200>::text(text)?;
        Ok(Self { id, revision: None })
    }

    fn object<'de, A: MapAccess<'de>>(
        object: A,
        reading: &Reading,
    ) -> Result<Result<Self, String>, A::Error> {
        read_form(object, reading).map(choice)
    }
}

fn choice(form: ChoiceForm) -> Result<Choice, String> {
    if let Some(name) = form.unknown.names().next() {
        let remark = unknown::remark(name, ChoiceForm::NAMES);
        return Err(format!("has a {}, which {remark}", unknown::shown(name)));
    }
    let mut mistakes = Mistakes::default();
    if !form.id.has_value() {
        return Err("must have an id".to_owned());
    }
    let (id, revision) = (mistakes.value(form.id), mistakes.value(form.revision));
    let (Text(id), revision) =
        mistakes.finish(id.map(|id| (id, revision))).map_err(|problem| problem.into_detail())?;
    Ok(Choice { id, revision: revision.and_then(|Revision(number)| number) })
}

/// The template that an event names; it must be the caller's to read.
pub(crate) async fn read_choice(
    app: &App,
    caller: &Principal,
    choice: &Choice,
) -> Result<TemplateChoice, String> {
    let Choice { id, revision } = choice;
    let missing = || format!("{id:?} is no template of yours, and no design that ships");
    let Ok(id) = id.parse::<TemplateId>() else {
        let design = app.press.design(id).ok_or_else(missing)?;
        if revision.is_some() {
            return Err("a design that ships has no revisions".to_owned());
        }
        return Ok(TemplateChoice::Shipped(design.name.clone()));
    };
    if caller.scope.is_limited() {
        return Err("a key with limits reaches no templates; choose a design that ships".to_owned());
    }
    let template = app.store.template(id).await.map_err(|_| "cannot be looked up right now")?;
    let template = template.filter(|template| caller.may_read(&template.owner));
    let template = template.ok_or_else(missing)?;
    if revision.is_some_and(|number| number == 0 || number > template.revision) {
        return Err(format!("has no such revision; the latest is {}", template.revision));
    }
    Ok(TemplateChoice::Own { id, revision: *revision })
}

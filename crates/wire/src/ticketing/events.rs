//! Events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stampede_model::{Branding, Currency, EventId, TemplateChoice, Timestamp};

/// An event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// The event's id.
    pub id: EventId,
    /// The user it belongs to.
    pub owner: String,
    /// Its name, printed on every ticket.
    pub name: String,
    /// Where it happens.
    pub location: String,
    /// When it begins.
    pub starts_at: Option<Timestamp>,
    /// IANA name of the zone its times are printed in.
    pub time_zone: String,
    /// Currency of its prices.
    pub currency: Currency,
    /// Colours of its tickets.
    pub branding: Branding,
    /// Language of its tickets (BCP 47); `null` is English.
    pub lang: Option<String>,
    /// The template of its tickets; `null` is the default design.
    pub template: Option<EventTemplate>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// The template of an event: a design that ships, or a template of an organiser with its revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventTemplate {
    /// Name of the design, or id of the template.
    pub id: String,
    /// The revision; absent for a design that ships.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<EventRevision>,
}

/// The revision of a template that an event uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum EventRevision {
    /// The event is pinned to this revision.
    Number(u32),
    /// The event follows the newest revision.
    Latest(Latest),
}

/// The word `latest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Latest {
    /// `latest`.
    Latest,
}

/// One page of events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventPage {
    /// The events.
    pub events: Vec<Event>,
    /// The `after` of the next page; `null` on the last page.
    pub next: Option<EventId>,
}

impl From<stampede_model::Event> for Event {
    fn from(event: stampede_model::Event) -> Self {
        let stampede_model::Event { id, owner, details, created_at, updated_at } = event;
        Self {
            id,
            owner,
            name: details.name,
            location: details.location,
            starts_at: details.starts_at,
            time_zone: details.time_zone,
            currency: details.currency,
            branding: details.branding,
            lang: details.lang.map(|lang| lang.as_str().to_owned()),
            template: details.template.as_ref().map(EventTemplate::from),
            created_at,
            updated_at,
        }
    }
}

impl From<&TemplateChoice> for EventTemplate {
    fn from(choice: &TemplateChoice) -> Self {
        match choice {
            TemplateChoice::Shipped(name) => Self { id: name.clone(), revision: None },
            TemplateChoice::Own { id, revision } => {
                let latest = EventRevision::Latest(Latest::Latest);
                let revision = revision.map_or(latest, EventRevision::Number);
                Self { id: id.to_string(), revision: Some(revision) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stampede_model::{EventDetails, TemplateId};

    use super::*;
    use crate::ticketing::golden::assert_golden;

    fn event(template: Option<TemplateChoice>) -> Event {
        let at = Timestamp::from_second(1_800_000_000).unwrap();
        let details = EventDetails {
            name: "Night".into(),
            location: "Hall".into(),
            starts_at: Some(at),
            time_zone: "Europe/Berlin".into(),
            currency: Currency::USD,
            branding: Branding::default(),
            lang: "pt-BR".parse().ok(),
            template,
        };
        let id = EventId::from_bytes([1; 16]);
        let owner = "ann".to_owned();
        stampede_model::Event { id, owner, details, created_at: at, updated_at: at }.into()
    }

    #[test]
    fn an_event_has_the_names_that_clients_read() {
        let page = EventPage { events: vec![event(None)], next: None };
        assert_golden(
            &page,
            json!({
                "events": [{
                    "id": "01010101-0101-0101-0101-010101010101",
                    "owner": "ann",
                    "name": "Night",
                    "location": "Hall",
                    "startsAt": "2027-01-15T08:00:00Z",
                    "timeZone": "Europe/Berlin",
                    "currency": "USD",
                    "branding": { "primary": "#667eea", "secondary": "#764ba2" },
                    "lang": "pt-BR",
                    "template": null,
                    "createdAt": "2027-01-15T08:00:00Z",
                    "updatedAt": "2027-01-15T08:00:00Z",
                }],
                "next": null,
            }),
        );
    }

    #[test]
    fn the_template_of_an_event_says_which_revision() {
        let id = TemplateId::from_bytes([2; 16]);
        for (choice, json) in [
            (TemplateChoice::Shipped("a4".into()), json!({ "id": "a4" })),
            (TemplateChoice::Own { id, revision: Some(3) }, json!({ "id": id, "revision": 3 })),
            (TemplateChoice::Own { id, revision: None }, json!({ "id": id, "revision": "latest" })),
        ] {
            assert_eq!(serde_json::to_value(&choice).unwrap(), json, "as the record has it");
            assert_golden(&event(Some(choice)).template, json);
        }
    }
}

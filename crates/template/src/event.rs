//! What a template sees of its event, already formatted.

use serde::{Deserialize, Serialize};
use stampede_model::{Event, TicketDocument};

/// Everything a template sees of the event: `event.json`, and `event` in the prelude.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct EventData {
    /// Name of the event.
    pub name: String,
    /// Where it happens.
    pub location: String,
    /// When it begins, as printed.
    pub starts: Option<String>,
    /// When it begins, in ISO 8601.
    pub starts_at: Option<String>,
    /// IANA name of the zone its times are printed in.
    pub time_zone: String,
    /// ISO 4217 code of its prices.
    pub currency: String,
    /// First colour of the brand, `#rrggbb`.
    pub primary: String,
    /// Second colour of the brand, `#rrggbb`.
    pub secondary: String,
    /// Language of its tickets, without its region: `pt`.
    pub lang: String,
    /// Region of the language, if one was named: `BR`.
    #[serde(default)]
    pub region: Option<String>,
}

impl From<&Event> for EventData {
    fn from(event: &Event) -> Self {
        let details = &event.details;
        let lang = details.lang.clone().unwrap_or_default();
        Self {
            name: details.name.clone(),
            location: details.location.clone(),
            starts: details.printed_start(),
            starts_at: details.starts_at.map(|time| time.to_string()),
            time_zone: details.time_zone.clone(),
            currency: details.currency.to_string(),
            primary: details.branding.primary.to_string(),
            secondary: details.branding.secondary.to_string(),
            lang: lang.language().to_owned(),
            region: lang.region().map(str::to_owned),
        }
    }
}

impl EventData {
    /// A made-up event, for trying templates out.
    pub fn sample() -> Self {
        Self {
            name: "Midsummer Night Festival".into(),
            location: "Tempelhofer Feld, Berlin".into(),
            starts: Some("Saturday, 20 June 2026, 19:30".into()),
            starts_at: Some("2026-06-20T17:30:00Z".into()),
            time_zone: "Europe/Berlin".into(),
            currency: "EUR".into(),
            primary: "#667eea".into(),
            secondary: "#764ba2".into(),
            lang: "en".into(),
            region: None,
        }
    }

    /// A made-up ticket of this event, for trying templates out.
    pub fn sample_ticket(&self) -> TicketDocument {
        TicketDocument {
            id: "0198f3a2-7c41-7d20-9b1e-4f6a2c8d5e01".into(),
            // As long as a signed token, so that the code looks as it will.
            code: "STAMPEDE2SAMPLE2TICKET2NOT2VALID2FOR2ENTRY2".repeat(3)[..120].to_owned(),
            index: 42,
            name: "Amelia Hartmann".into(),
            seat: Some("Row C, Seat 14".into()),
            price: Some("€48.00".into()),
            event: self.name.clone(),
            location: self.location.clone(),
            starts: self.starts.clone(),
            lang: self.lang.clone(),
            primary: self.primary.clone(),
            secondary: self.secondary.clone(),
        }
    }
}

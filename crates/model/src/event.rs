//! Events: what tickets are for.

mod dates;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{Currency, EventId, Lang, TemplateChoice, Timestamp};

/// An event as it is stored and sent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Names the event.
    pub id: EventId,
    /// The user it belongs to.
    pub owner: String,
    /// What a person can change.
    #[serde(flatten)]
    pub details: EventDetails,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// The part of an event that its organiser writes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventDetails {
    /// Printed large on every ticket.
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
    /// Language of its tickets; `None` is English.
    pub lang: Option<Lang>,
    /// What its tickets are made with; `None` is the default design.
    pub template: Option<TemplateChoice>,
}

impl EventDetails {
    /// The start as printed on a ticket, in its language: `Saturday, 21 November 2026, 19:30`.
    pub fn printed_start(&self) -> Option<String> {
        let zoned = self.starts_at?.to_zoned(time_zone(&self.time_zone)?);
        let language = self.lang.as_ref().map_or("en", Lang::language);
        let printed = dates::written(&zoned, language);
        // Everybody knows the local time of a place, but nobody lives in UTC: then it is said.
        Some(if self.time_zone == "UTC" { format!("{printed} UTC") } else { printed })
    }
}

/// The rules of a time zone by its IANA name, from the database that is part of this program: what
/// is installed on a machine must not change what its tickets say.
pub fn time_zone(name: &str) -> Option<TimeZone> {
    static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
    let is_place = name.contains('/') || matches!(name, "UTC" | "GMT");
    if is_place && name != "Etc/Unknown" { ZONES.get(name).ok() } else { None }
}

/// The two colours of the gradient on a ticket; the defaults are those of seed 000.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Branding {
    /// Where the gradient begins.
    pub primary: HexColor,
    /// Where it ends.
    pub secondary: HexColor,
}

impl Default for Branding {
    fn default() -> Self {
        Self { primary: HexColor([0x66, 0x7e, 0xea]), secondary: HexColor([0x76, 0x4b, 0xa2]) }
    }
}

/// A colour written `#rrggbb`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HexColor([u8; 3]);

impl fmt::Display for HexColor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", hex::encode(self.0))
    }
}

impl FromStr for HexColor {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut rgb = [0; 3];
        text.strip_prefix('#')
            .and_then(|digits| hex::decode_to_slice(digits, &mut rgb).ok())
            .map(|()| Self(rgb))
            .ok_or("must be a colour such as #667eea")
    }
}

impl JsonSchema for HexColor {
    fn schema_name() -> Cow<'static, str> {
        "HexColor".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^#[0-9a-fA-F]{6}$", "examples": ["#667eea"] })
    }
}

impl Serialize for HexColor {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HexColor {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_six_hexadecimal_digits() {
        assert_eq!("#667EEA".parse::<HexColor>().unwrap().to_string(), "#667eea");
        for text in ["", "667eea", "#667ee", "#667eeaa", "#zzzzzz", "red\"); panic("] {
            assert!(text.parse::<HexColor>().is_err(), "{text}");
        }
    }

    #[test]
    fn time_zones_are_places_and_come_from_this_program() {
        for name in ["Europe/Riga", "America/Argentina/Ushuaia", "UTC", "Etc/GMT+3"] {
            assert!(time_zone(name).is_some(), "{name}");
        }
        for name in [
            "localtime",
            "posixrules",
            "Factory",
            "Etc/Unknown",
            "Mars/Olympus",
            "../etc/passwd",
            "",
        ] {
            assert!(time_zone(name).is_none(), "{name}");
        }
    }

    #[test]
    fn the_start_is_printed_in_the_zone_of_the_event() {
        let details = EventDetails {
            name: "Night".into(),
            location: "Hall".into(),
            starts_at: Some("2026-11-21T16:30:00Z".parse().unwrap()),
            time_zone: "Europe/Moscow".into(),
            currency: Currency::USD,
            branding: Branding::default(),
            lang: None,
            template: None,
        };
        assert_eq!(details.printed_start().unwrap(), "Saturday, 21 November 2026, 19:30");
        for (lang, printed) in [
            ("en-GB", "Saturday, 21 November 2026, 19:30"),
            ("ru", "суббота, 21 ноября 2026, 19:30"),
            ("uk", "субота, 21 листопада 2026, 19:30"),
            ("de-AT", "Samstag, 21. November 2026, 19:30 Uhr"),
            ("fr", "samedi 21 novembre 2026, 19:30"),
            ("es-419", "sábado, 21 de noviembre de 2026, 19:30"),
            ("ar", "السبت، 21 نوفمبر 2026، 19:30"),
            ("he", "יום שבת, 21 בנובמבר 2026, 19:30"),
            ("zh-Hant-TW", "2026年11月21日 星期六 19:30"),
            ("hi", "शनिवार, 21 नवंबर 2026, 19:30"),
            ("th", "วันเสาร์ที่ 21 พฤศจิกายน 2569 เวลา 19:30 น."),
            ("tlh", "Saturday, 21 November 2026, 19:30"),
        ] {
            let lang = Some(lang.parse().unwrap());
            let details = EventDetails { lang, ..details.clone() };
            assert_eq!(details.printed_start().unwrap(), printed);
        }
        let utc = EventDetails { time_zone: "UTC".into(), ..details };
        assert_eq!(utc.printed_start().unwrap(), "Saturday, 21 November 2026, 16:30 UTC");
    }
}

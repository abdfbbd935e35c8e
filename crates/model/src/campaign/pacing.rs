//! How fast messages may leave, as people set it. The arithmetic is in the crate `campaign`.

use jiff::civil::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `max` messages in any window of `perMs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct Rate {
    /// Most messages in any window; 0 stops everything.
    pub max: u32,
    /// The window in milliseconds.
    pub per_ms: u64,
}

impl Rate {
    /// The limit of an account that has none of its own: 20 a minute.
    pub const DEFAULT: Self = Self { max: 20, per_ms: 60_000 };
}

/// A pause of random length after every message of the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct Spacing {
    /// The shortest pause in milliseconds.
    pub min_ms: u64,
    /// The longest pause in milliseconds.
    pub max_ms: u64,
}

/// A long pause after so many messages of the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct Rest {
    /// After how many messages.
    pub every: u32,
    /// For how many milliseconds.
    pub for_ms: u64,
}

/// The most messages of a day, which grows from day to day: on day `d` after the first message of the account it is
/// `min(max, floor(start × factor^d))`. Days are those of the account's time zone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct WarmUp {
    /// Most messages of the first day.
    pub start: u32,
    /// How the most messages grow from one day to the next; at least 1.
    pub factor: f64,
    /// The end of the growth.
    pub max: u32,
}

/// A day of the week.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[expect(missing_docs, reason = "the names of the days say it")]
pub enum Day {
    Monday,
    Tuesday,
    Wednesday,
    Thursday,
    Friday,
    Saturday,
    Sunday,
}

/// Hours in which nothing is sent: from `from` until before `to`, over midnight if `to` is not later than `from`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct QuietHours {
    /// The first quiet minute, such as `21:00`.
    #[schemars(with = "String")]
    pub from: Time,
    /// The first minute that is not quiet any more, such as `09:00`.
    #[schemars(with = "String")]
    pub to: Time,
    /// The days on which quiet hours begin; `null` or absent: every day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub days: Option<Vec<Day>>,
    /// The time zone, such as `Europe/Berlin`; a recipient's own zone goes before it, and the campaign's zone counts if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
}

/// How fast an account or a campaign sends. What is absent does not limit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(inline)]
pub struct Pacing {
    /// Messages in any window. An account without one sends 20 a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Rate>,
    /// A pause after every message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spacing: Option<Spacing>,
    /// A long pause after so many messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest: Option<Rest>,
    /// Most messages in any 24 hours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daily_cap: Option<u32>,
    /// Most messages of a day that grow from day to day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUp>,
    /// Hours in which nothing is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet_hours: Option<QuietHours>,
}

/// When a campaign pauses by itself. It never resumes by itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(inline)]
pub struct AutoPause {
    /// So many temporary failures in a row; 0: never.
    pub in_a_row: u32,
    /// More than this share of the last 100 attempts failed (of at least 20), in percent; 100: never.
    pub failed_percent: u32,
    /// More than this share of the last 500 attempts were hard bounces (of at least 50), in percent; 100: never.
    pub bounced_percent: u32,
}

impl Default for AutoPause {
    fn default() -> Self {
        Self { in_a_row: 10, failed_percent: 10, bounced_percent: 5 }
    }
}

//! Recipients that are imported.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of a list of recipients, or would become of it (`dryRun`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportReport {
    /// Nothing was written.
    pub dry_run: bool,
    /// Rows that were read.
    pub rows: u64,
    /// Recipients that will be sent to.
    pub added: u64,
    /// Recipients that are skipped because their address is none. Each is listed in `mistakes`.
    pub invalid: u64,
    /// Recipients that are skipped because an earlier one has the same address.
    pub duplicates: u64,
    /// The first of them.
    pub duplicate_rows: Vec<Duplicate>,
    /// Recipients that are skipped because their address is suppressed.
    pub suppressed: u64,
    /// Tickets of guests that are left out because they are void.
    pub void: u64,
    /// Rows that could not be read, and invalid addresses; more than these are only counted.
    pub mistakes: Vec<RowMistake>,
    /// How many there are.
    pub mistakes_total: u64,
    /// Why the campaign cannot start with these recipients, each a sentence: fields of its texts that no recipient has, no messages.
    pub problems: Vec<String>,
    /// The encoding of the file, by its usual name.
    pub encoding: Option<String>,
    /// The delimiter of a CSV file.
    pub delimiter: Option<String>,
    /// The columns of the file and their meaning.
    pub columns: Vec<ImportColumn>,
    /// The first recipients, as they were read.
    pub first: Vec<ImportedRow>,
}

/// A recipient whose address an earlier one has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Duplicate {
    /// Its line.
    pub line: Option<u64>,
    /// The line of the first recipient with that address.
    pub first_line: Option<u64>,
}

/// A mistake in a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RowMistake {
    /// The line of the file, from 1; the place in a request's list; `null` in a JSON file, whose fields say more.
    pub line: Option<u64>,
    /// The field that is at fault: `email`, `recipients[3].email`; `null`: the whole row.
    pub field: Option<String>,
    /// What is wrong and what would be right.
    pub message: String,
}

/// A column of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportColumn {
    /// Its title in the file.
    pub title: String,
    /// Its meaning: `address`, `message`, `timeZone` or `field`; `null`: it is ignored.
    pub meaning: Option<String>,
    /// The name under which templates find it.
    pub field: Option<String>,
}

/// A recipient as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedRow {
    /// The line of the file.
    pub line: Option<u64>,
    /// The address, normalised.
    pub address: String,
    /// The fields.
    pub fields: BTreeMap<String, String>,
    /// The recipient's own message.
    pub message: Option<String>,
}

//! Files of guests that are uploaded as orders.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stampede_model::{BatchId, Currency};

use super::orders::TicketWarnings;
use crate::problem::FieldError;

/// The answer to an accepted upload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UploadAccepted {
    /// Always true.
    pub success: bool,
    /// The batch of the order's tickets.
    pub batch_id: BatchId,
    /// Tickets of the batch.
    pub total: u64,
    /// Path of the list of its tickets.
    pub tickets_url: String,
    /// What a person should look at; absent if there is nothing.
    #[serde(flatten)]
    pub warnings: TicketWarnings,
}

/// The answer to a dry run: what the upload would do. Nothing was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UploadDryRun {
    /// Always true: it was a dry run.
    pub dry_run: bool,
    /// Whether the file would be accepted as it is.
    pub accepted: bool,
    /// Tickets that it would order: rows without mistakes.
    pub total: u64,
    /// The price of all tickets, as a decimal text; `null`: no ticket has a price.
    pub total_price: Option<String>,
    /// The currency of the event.
    pub currency: Currency,
    /// The form of the file.
    pub format: UploadFormat,
    /// The encoding of the file.
    pub encoding: String,
    /// The delimiter of a CSV file: `comma`, `semicolon` or `tab`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<String>,
    /// The columns of a CSV file; absent for other files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<UploadColumn>,
    /// The first rows, as they were read.
    pub rows: Vec<UploadRow>,
    /// The first thousand mistakes; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// All mistakes.
    pub error_count: u64,
    /// What a person should look at; absent if there is nothing.
    #[serde(flatten)]
    pub warnings: TicketWarnings,
}

/// The form of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UploadFormat {
    /// A table with a header.
    Csv,
    /// One JSON object a line.
    Ndjson,
    /// One JSON object with a list of holders.
    Json,
}

impl UploadFormat {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Ndjson => "ndjson",
            Self::Json => "json",
        }
    }
}

/// A column of a CSV file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UploadColumn {
    /// Its name in the header.
    pub name: String,
    /// The field that it holds: `name`, `email`, `phoneNumber`, `chatId`, `seat`, `price` or `currency`; `null`: it is ignored.
    pub field: Option<String>,
}

/// A row, as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UploadRow {
    /// The line of the file where it begins; in JSON its place among the holders, from 1.
    pub line: u64,
    /// The holder's name.
    pub name: String,
    /// The holder's address.
    pub email: Option<String>,
    /// The holder's telephone number; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone_number: Option<String>,
    /// The holder's chat of Telegram; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<String>,
    /// Seat, row or class.
    pub seat: Option<String>,
    /// The amount of its own price.
    pub price: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ticketing::golden::assert_golden;

    #[test]
    fn the_answers_have_the_names_that_clients_read() {
        let accepted = UploadAccepted {
            success: true,
            batch_id: BatchId::from_bytes([1; 16]),
            total: 3,
            tickets_url: "/api/tickets?batch=x".into(),
            warnings: TicketWarnings::default(),
        };
        assert_golden(
            &accepted,
            json!({
                "success": true, "batchId": "01010101-0101-0101-0101-010101010101", "total": 3,
                "ticketsUrl": "/api/tickets?batch=x",
            }),
        );
        let row = UploadRow {
            line: 2,
            name: "Ann".into(),
            email: None,
            phone_number: Some("+79991234567".into()),
            chat_id: None,
            seat: None,
            price: None,
        };
        let dry_run = UploadDryRun {
            dry_run: true,
            accepted: false,
            total: 1,
            total_price: Some("5.00".into()),
            currency: Currency::USD,
            format: UploadFormat::Csv,
            encoding: "UTF-8".into(),
            delimiter: Some("comma".into()),
            columns: vec![UploadColumn { name: "Guest".into(), field: Some("name".into()) }],
            rows: vec![row],
            errors: vec![FieldError { line: Some(3), ..FieldError::new("name", "is missing") }],
            error_count: 1,
            warnings: TicketWarnings::default(),
        };
        assert_golden(
            &dry_run,
            json!({
                "dryRun": true, "accepted": false, "total": 1, "totalPrice": "5.00", "currency": "USD",
                "format": "csv", "encoding": "UTF-8", "delimiter": "comma",
                "columns": [{ "name": "Guest", "field": "name" }],
                "rows": [{
                    "line": 2, "name": "Ann", "email": null, "phoneNumber": "+79991234567", "seat": null, "price": null,
                }],
                "errors": [{ "line": 3, "field": "name", "message": "is missing" }], "errorCount": 1,
            }),
        );
    }
}

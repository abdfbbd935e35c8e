//! Entries as CSV (RFC 4180), for spreadsheets: a cell never begins like a formula.

use stampede_wire::audit::Entry;

/// The heads of the columns.
const COLUMNS: [&str; 18] = [
    "id",
    "at",
    "user",
    "role",
    "key",
    "keyName",
    "origin",
    "address",
    "requestId",
    "operation",
    "kind",
    "record",
    "event",
    "outcome",
    "status",
    "before",
    "after",
    "leftOut",
];

/// The entries with the heads of their columns.
pub fn as_csv(entries: &[Entry]) -> String {
    let mut csv = COLUMNS.join(",");
    csv.push_str("\r\n");
    for entry in entries {
        let cells = cells(entry);
        csv.push_str(&cells.map(|cell| written(&cell)).join(","));
        csv.push_str("\r\n");
    }
    csv
}

fn cells(entry: &Entry) -> [String; 18] {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let json = |value: &Option<serde_json::Value>| {
        value.as_ref().map(ToString::to_string).unwrap_or_default()
    };
    [
        entry.id.to_string(),
        entry.at.to_string(),
        entry.user.clone(),
        entry.role.to_string(),
        entry.key.map(|key| key.to_string()).unwrap_or_default(),
        text(&entry.key_name),
        entry.origin.as_str().to_owned(),
        text(&entry.address),
        text(&entry.request_id),
        entry.operation.clone(),
        text(&entry.kind),
        text(&entry.record),
        entry.event.map(|event| event.to_string()).unwrap_or_default(),
        entry.outcome.as_str().to_owned(),
        entry.status.map(|status| status.to_string()).unwrap_or_default(),
        json(&entry.before),
        json(&entry.after),
        entry.left_out.to_string(),
    ]
}

/// A cell. A spreadsheet runs a text that begins with one of these signs; an apostrophe before it makes it a text.
fn written(cell: &str) -> String {
    let formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '|', '%']);
    let cell = if formula { format!("'{cell}") } else { cell.to_owned() };
    match cell.contains([',', '"', '\r', '\n', ';']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_never_formulas() {
        for (cell, csv) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("=1+1", "'=1+1"),
            ("=HYPERLINK(\"x\",\"y\")", "\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\""),
            ("@cmd", "'@cmd"),
            ("-1", "'-1"),
            ("two\nlines", "\"two\nlines\""),
        ] {
            assert_eq!(written(cell), csv, "{cell}");
        }
    }
}

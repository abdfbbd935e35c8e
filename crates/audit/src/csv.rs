//! Entries as CSV (RFC 4180), for spreadsheets: a cell never begins like a formula.

use stampede_model::spreadsheet;
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

/// The place of the record before; the record after follows.
const BEFORE: usize = 15;

/// The entries with the heads of their columns.
pub fn as_csv(entries: &[Entry]) -> String {
    let mut csv = COLUMNS.join(",");
    csv.push_str("\r\n");
    for entry in entries {
        csv.push_str(&cells(entry).join(","));
        csv.push_str("\r\n");
    }
    csv
}

fn cells(entry: &Entry) -> [String; 18] {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let json = |value: &Option<serde_json::Value>| {
        let json = value.as_ref().map(ToString::to_string).unwrap_or_default();
        quoted(spreadsheet::guarded_json(&json))
    };
    let [before, after] = [json(&entry.before), json(&entry.after)];
    let texts = [
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
        String::new(),
        String::new(),
        entry.left_out.to_string(),
    ];
    let mut cells = texts.map(|text| written(&text));
    (cells[BEFORE], cells[BEFORE + 1]) = (before, after);
    cells
}

/// A cell, which no spreadsheet takes for a formula.
fn written(cell: &str) -> String {
    let mut cell = spreadsheet::guarded(cell);
    // Commands of other programs.
    if cell.starts_with(['|', '%']) {
        cell.insert(0, '\'');
    }
    quoted(cell)
}

fn quoted(cell: String) -> String {
    match cell.contains(spreadsheet::DELIMITERS) || cell.contains('"') {
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
            ("x;=HYPERLINK(1)", "\"x;'=HYPERLINK(1)\""),
            ("'=1", "''=1"),
            ("\"=1", "\"'\"\"=1\""),
            ("a,b;\t@x", "\"a,b;'\t'@x\""),
            ("|calc", "'|calc"),
            ("two\nlines", "\"two\nlines\""),
        ] {
            assert_eq!(written(cell), csv, "{cell}");
        }
    }
}

//! Recipients of a CSV file, as spreadsheets make them.

use std::io::{Cursor, Read};

use stampede_guests::{Cell, Delimiter, KEPT, Place, Record, Records, look, shown};
use stampede_model::campaign::AddressKind;

use super::columns::{Meaning, address_rank, is_known, plain_meaning};
use super::draft::{Draft, Value};
use super::{Column, Error, LONGEST_FIELD, LONGEST_MESSAGE, MOST_FIELDS, Reading};

/// Bytes in which the delimiter is looked for.
const HEAD: usize = 64 << 10;
/// Most columns of a table: the address, the message, the time zone and all fields.
const MOST_COLUMNS: usize = MOST_FIELDS + 3;

pub(super) fn read(
    mut text: impl Read,
    delimiter: Option<Delimiter>,
    reading: &mut Reading<'_>,
) -> Result<(), Error> {
    let mut head = Vec::with_capacity(HEAD);
    text.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
    let looked = look(&head, &is_known);
    let delimiter = delimiter.unwrap_or(looked.delimiter);
    let first_line = if looked.skipped > 0 { 2 } else { 1 };
    head.drain(..looked.skipped);
    let text = Cursor::new(head).chain(text);
    // The header is read with the usual bound: its cells are not yet known to be few.
    let mut records = Records::new(text, delimiter.as_byte(), first_line);
    let mut record = Record::default();
    if !records.next(&mut record)? {
        return Err(Error::Unreadable(
            "the file is empty; its first line must name the columns, at least the address"
                .to_owned(),
        ));
    }
    let (columns, wrong) = columns(&record, reading.rules.kind)?;
    for told in &wrong {
        reading.note(Place::Line(record.line), told);
    }
    reading.has_address = columns.iter().any(|(_, meaning)| *meaning == Meaning::Address);
    reading.header = wrong;
    reading.report.delimiter = Some(delimiter);
    reading.report.columns =
        columns.iter().map(|(name, meaning)| shown_column(name, meaning)).collect();
    let mut records = records.keeping(if has_message(&columns) { LONGEST_MESSAGE } else { KEPT });
    let mut record = Record::default();
    let mut rows = 0;
    while records.next(&mut record)? {
        if record.is_blank() {
            continue;
        }
        rows += 1;
        reading.count(rows)?;
        add(&record, &columns, reading)?;
    }
    if rows == 0 {
        return Err(Error::Unreadable("the file has a header and no rows".to_owned()));
    }
    Ok(())
}

type Columns = Vec<(String, Meaning)>;

fn has_message(columns: &Columns) -> bool {
    columns.iter().any(|(_, meaning)| *meaning == Meaning::Message)
}

fn shown_column(name: &str, meaning: &Meaning) -> Column {
    let field = match meaning {
        Meaning::Address => "address",
        Meaning::Message => "message",
        Meaning::TimeZone => "timeZone",
        Meaning::Field(field) => field,
    };
    Column { name: shown(name), field: field.to_owned() }
}

/// Reads the header; the texts say what is wrong with it. A column that is one too many is not read.
fn columns(header: &Record, kind: AddressKind) -> Result<(Columns, Vec<String>), Error> {
    let mut names: Vec<String> =
        header.cells().iter().map(|cell| cell.text().trim().to_owned()).collect();
    // Spreadsheets write delimiters behind the last column.
    while names.last().is_some_and(String::is_empty) {
        names.pop();
    }
    let count = names.len() + header.beyond;
    let too_many = format!(
        "the first line has {count} columns; a table may have the address, the message, the time zone and {MOST_FIELDS} \
         fields: remove columns that no text uses"
    );
    if header.beyond > 0 {
        return Err(Error::Unreadable(too_many));
    }
    let ranks: Vec<u8> = names.iter().map(|name| address_rank(name, kind)).collect();
    let best = ranks.iter().copied().max().unwrap_or_default();
    let mut wrong = Vec::new();
    if best == 0 {
        wrong.push(no_address(&names, kind));
    }
    let mut found: Columns = Vec::with_capacity(names.len());
    for (name, rank) in names.iter().zip(ranks) {
        let is_address = rank > 0 && rank == best;
        let meaning = if is_address { Meaning::Address } else { plain_meaning(name) };
        let twin = found.iter().find(|(first, other)| !first.is_empty() && *other == meaning);
        let twin = twin.filter(|_| !name.is_empty());
        if let Some((first, _)) = twin {
            let what = if meaning == Meaning::Address { "the address" } else { "the same" };
            let (first, second) = (shown(first), shown(name));
            wrong.push(format!(
                "two columns hold {what}: {first:?} and {second:?}; remove or rename one of them"
            ));
        }
        // An unnamed column is not read.
        let is_read = twin.is_none() && !name.is_empty();
        found.push(match is_read {
            true => (name.clone(), meaning),
            false => (String::new(), Meaning::Field(String::new())),
        });
    }
    let is_field = |(name, meaning): &&(String, Meaning)| {
        matches!(meaning, Meaning::Field(_)) && !name.is_empty()
    };
    let fields = found.iter().filter(is_field).count();
    if count > MOST_COLUMNS {
        wrong.push(too_many);
    } else if fields > MOST_FIELDS {
        wrong.push(format!(
            "the table has {fields} columns for fields; there may be {MOST_FIELDS}: remove columns that no text uses"
        ));
    }
    Ok((found, wrong))
}

fn no_address(names: &[String], kind: AddressKind) -> String {
    let wanted = match kind {
        AddressKind::Phone => "\"phone\" (or phoneNumber, mobile, to, телефон)",
        AddressKind::Mail => "\"email\" (or mail, address, to, почта)",
        AddressKind::Chat => "\"chat\" (or chat_id, telegram, to, чат)",
        AddressKind::Any => "\"address\" (or phone, email, chat, to, телефон, почта)",
    };
    let found: Vec<String> = names.iter().map(|name| format!("{:?}", shown(name))).collect();
    format!(
        "no column is called {wanted}; the first line must name the columns, and has: {}",
        found.join(", ")
    )
}

/// Keeps one record.
fn add(record: &Record, columns: &Columns, reading: &mut Reading<'_>) -> Result<(), Error> {
    let mut draft = Draft::default();
    if record.has_more_than(columns.len()) {
        let (cells, named) = (record.cells().len() + record.beyond, columns.len());
        draft.wrong(format!(
            "the row has {cells} cells, but the first line names {named} columns; put cells that contain the delimiter between \
             quotes"
        ));
    }
    for (index, (name, meaning)) in columns.iter().enumerate() {
        if name.is_empty() {
            continue;
        }
        let longest = if *meaning == Meaning::Message { LONGEST_MESSAGE } else { LONGEST_FIELD };
        let value = record.cells().get(index).map_or(Value::Absent, |cell| value(cell, longest));
        draft.set(meaning, name, value);
    }
    reading.add(Place::Line(record.line), record.line, draft)
}

fn value(cell: &Cell, longest: usize) -> Value {
    if cell.length > longest || cell.is_cut() {
        return Value::Wrong(format!("is longer than {longest} bytes, has {}", cell.length));
    }
    Value::from(&*cell.text())
}

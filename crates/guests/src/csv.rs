//! Guests of a CSV file, as spreadsheets make them.

use std::io::{self, Cursor, Read};

use stampede_model::{Money, spreadsheet};

use crate::columns::{Columns, Delimiter, Meaning, is_known, look};
use crate::mistakes::Place;
use crate::records::{Cell, KEPT, Record, Records};
use crate::row::{Row, Value};
use crate::{Error, Guest, Report, Rules};

/// Bytes in which the delimiter is looked for.
const HEAD: usize = 64 << 10;

pub(crate) fn read(
    mut text: impl Read,
    delimiter: Option<Delimiter>,
    rules: Rules,
    keep: &mut dyn FnMut(Guest) -> io::Result<()>,
) -> Result<Report, Error> {
    let mut head = Vec::with_capacity(HEAD);
    text.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
    let looked = look(&head, &is_known);
    let delimiter = delimiter.unwrap_or(looked.delimiter);
    let first_line = if looked.skipped > 0 { 2 } else { 1 };
    head.drain(..looked.skipped);
    let text = Cursor::new(head).chain(text);
    let mut records = Records::new(text, delimiter.as_byte(), first_line);
    let mut record = Record::default();
    if !records.next(&mut record)? {
        return Err(Error::Unreadable(
            "the file is empty; its first line must name the columns, at least \"name\"".to_owned(),
        ));
    }
    let columns = Columns::of(&record)?;
    let mut report = Report { delimiter: Some(delimiter), ..Report::default() };
    let mut rows = 0;
    while records.next(&mut record)? {
        if record.is_blank() {
            continue;
        }
        rows += 1;
        if rows > rules.most {
            return Err(Error::TooMany(rules.most));
        }
        add(&record, &columns, delimiter, rules, &mut report, keep)?;
    }
    if rows == 0 {
        return Err(Error::Unreadable("the file has a header and no rows".to_owned()));
    }
    report.remarks = columns.remarks;
    report.columns = columns.shown;
    Ok(report)
}

/// Checks one record and keeps its guest.
fn add(
    record: &Record,
    columns: &Columns,
    delimiter: Delimiter,
    rules: Rules,
    report: &mut Report,
    keep: &mut dyn FnMut(Guest) -> io::Result<()>,
) -> Result<(), Error> {
    let place = Place::Line(record.line);
    let before = report.mistakes.count;
    if record.has_more_than(columns.count()) {
        let (cells, named) = (record.cells().len() + record.beyond, columns.count());
        let message = format!(
            "the row has {cells} cells, but the first line names {named} columns; put cells that contain the delimiter \
             between quotes"
        );
        report.mistakes.note(place, "", message);
    }
    let mut row = Row::default();
    for (index, cell) in record.cells().iter().enumerate() {
        match columns.at(index) {
            Some(Meaning::Name) => row.name = value(cell),
            Some(Meaning::Email) => row.email = value(cell),
            Some(Meaning::Phone) => row.phone = value(cell),
            Some(Meaning::Chat) => row.chat = value(cell),
            Some(Meaning::Seat) => row.seat = value(cell),
            Some(Meaning::Price) => row.price = price(cell, delimiter),
            Some(Meaning::Currency) => {
                let code = cell.text().trim().to_ascii_uppercase();
                if !code.is_empty() && code != rules.currency.code() {
                    let right = rules.currency.code();
                    let message = format!("must be {right}, the currency of the event");
                    report.mistakes.note(place, "currency", message);
                }
            }
            Some(Meaning::Ours) | None => {}
        }
    }
    let checked = row.check(place, rules.currency, &mut report.mistakes);
    // Mistakes of the record itself count for the row, too.
    if let Some((guest, price)) = checked.filter(|_| report.mistakes.count == before) {
        report.count(price)?;
        keep(guest)?;
    }
    Ok(())
}

fn value(cell: &Cell) -> Value {
    if cell.is_cut() {
        return Value::Wrong(format!("is longer than {KEPT} bytes, has {}", cell.length));
    }
    let text = cell.text();
    match text.trim() {
        "" => Value::Absent,
        text => Value::Is(spreadsheet::plain(text)),
    }
}

/// A price as spreadsheets write it: where a comma does not separate cells, it separates decimals.
fn price(cell: &Cell, delimiter: Delimiter) -> Value {
    let Value::Is(text) = value(cell) else { return value(cell) };
    // Spaces between thousands.
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    match delimiter {
        Delimiter::Comma => Value::Is(text),
        Delimiter::Semicolon | Delimiter::Tab => Value::Is(with_a_point(&text)),
    }
}

/// An amount with a comma before its decimals, as one with a point: `1.049,90` as `1049.90`.
fn with_a_point(text: &str) -> String {
    match text.rsplit_once(',') {
        Some((whole, decimals)) => format!("{}.{decimals}", whole.replace('.', "")),
        None => text.to_owned(),
    }
}

impl Report {
    /// Counts a guest with this price.
    pub(crate) fn count(&mut self, price: Option<Money>) -> Result<(), Error> {
        self.guests += 1;
        self.price = match (self.price, price) {
            (Some(sum), Some(price)) => sum.plus(price),
            (sum, price) => sum.or(price),
        };
        self.without_price += usize::from(price.is_none());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use stampede_model::Currency;

    use super::*;
    use crate::{Format, read as read_any};

    fn rules(most: usize) -> Rules {
        Rules { currency: Currency::USD, most }
    }

    fn guests(text: &str) -> Result<(Vec<Guest>, Report), Error> {
        let mut guests = Vec::new();
        let report =
            read_any(Cursor::new(text), Format::Csv(None), None, rules(10), &mut |guest| {
                guests.push(guest);
                Ok(())
            })?;
        Ok((guests, report))
    }

    fn told(report: &Report) -> Vec<String> {
        let told = report.mistakes.listed.iter();
        told.map(|m| format!("{} {} {}", m.line.unwrap_or(0), m.field, m.message)).collect()
    }

    #[test]
    fn a_table_of_a_spreadsheet_becomes_guests() {
        let text = "\u{feff}ФИО;E-Mail;Место;Цена;Телефон;Telegram\r\nЗоя;zoe@example.com;A 1;1 049,90;8 999 123-45-67;@zoe_p\r\n\r\n;;;\r\n\"О'Нил; Иван\";;;\r\n";
        let (guests, report) = guests(text).unwrap();
        assert_eq!(report.delimiter, Some(Delimiter::Semicolon));
        assert_eq!((report.guests, report.without_price, report.mistakes.count), (2, 1, 0));
        assert_eq!(report.price.unwrap().amount(), "1049.90");
        let expected = Guest {
            line: 2,
            name: "Зоя".into(),
            email: Some("zoe@example.com".into()),
            phone: Some("8 999 123-45-67".into()),
            chat: Some("@zoe_p".into()),
            seat: Some("A 1".into()),
            price: Some("1049.90".into()),
        };
        assert_eq!(guests[0], expected);
        assert_eq!((guests[1].line, guests[1].name.as_str()), (5, "О'Нил; Иван"));
    }

    #[test]
    fn amounts_with_a_decimal_comma_may_have_points_between_thousands() {
        let amounts = ["49,90", "1.049,90", "1.234.567,8", "49.90", "7"].map(with_a_point);
        assert_eq!(amounts, ["49.90", "1049.90", "1234567.8", "49.90", "7"]);
    }

    #[test]
    fn every_bad_row_is_told_with_its_line() {
        let text = "name,email,price,currency\nAnn,,1,USD\n,x@y.z,,\n\"two\nlines\",nobody,\"1,5\",EUR\nEve,,2,,,surplus\n";
        let (guests, report) = guests(text).unwrap();
        assert_eq!((guests.len(), report.guests), (1, 1));
        let told = told(&report);
        assert_eq!(told[0], "3 name is missing");
        assert!(told[1].starts_with("4 currency must be USD"), "{told:?}");
        assert!(told[2].starts_with("4 name contains U+000A"), "{told:?}");
        assert!(told[3].starts_with("4 email must be"), "{told:?}");
        assert!(told[4].starts_with("4 price must be a decimal"), "{told:?}");
        assert!(told[5].starts_with("6  the row has 6 cells"), "{told:?}");
        assert_eq!(report.mistakes.count, 6);
    }

    #[test]
    fn hostile_tables_are_refused_or_told() {
        let huge =
            format!("name,notes\nAnn,{}\n{},x\n", "z".repeat(10 << 20), "y".repeat(10 << 20));
        let (kept, report) = guests(&huge).unwrap();
        assert_eq!(kept.len(), 1, "a long cell of a column that nobody reads does no harm");
        assert!(told(&report)[0].starts_with("3 name is longer than"), "{:?}", told(&report));
        let (_, report) = guests("name\nA\0nn\n").unwrap();
        assert!(told(&report)[0].contains("U+0000"), "{:?}", told(&report));
        let (kept, _) = guests("name\n=HYPERLINK(\"x\")\n'=1+1\n'quoted\n").unwrap();
        let names: Vec<&str> = kept.iter().map(|guest| guest.name.as_str()).collect();
        assert_eq!(names, ["=HYPERLINK(\"x\")", "=1+1", "'quoted"]);
        let many = format!("name\n{}", "Ann\n".repeat(11));
        assert!(matches!(guests(&many), Err(Error::TooMany(10))));
        for empty in ["", "\n\n", "name\n", "name,seat\n,\n \n"] {
            assert!(matches!(guests(empty), Err(Error::Unreadable(_))), "{empty:?}");
        }
    }
}

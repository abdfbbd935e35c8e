//! Tickets as CSV. The header has the names that [`crate::read`] knows, so that a file that was written can be read again.
//!
//! No cell is a formula (`stampede_model::spreadsheet`). Reading takes the apostrophes away that keep it from being one.

use stampede_model::{Ticket, spreadsheet};

/// The header of the file.
const HEADER: [&str; 12] = [
    "name",
    "email",
    "seat",
    "price",
    "currency",
    "status",
    "number",
    "generation",
    "ticket",
    "error",
    "phone",
    "chat",
];

/// A CSV file that is being written: commas, `\r\n`, UTF-8.
#[derive(Debug, Default)]
pub struct Written {
    text: String,
}

impl Written {
    /// A file that begins with its header; `with_mark`: and before it with a byte order mark, which Excel needs.
    pub fn begin(mark: Mark) -> Self {
        let mut written = Self::default();
        if mark == Mark::Written {
            written.text.push('\u{feff}');
        }
        written.row(HEADER);
        written
    }

    /// Adds a ticket.
    pub fn add(&mut self, ticket: &Ticket) {
        let (number, generation) = (ticket.serial.to_string(), ticket.generation.to_string());
        let (price, id) = (ticket.price.map(|price| price.amount()), ticket.id.to_string());
        self.row([
            &ticket.holder.name,
            ticket.holder.email.as_deref().unwrap_or_default(),
            ticket.holder.seat.as_deref().unwrap_or_default(),
            price.as_deref().unwrap_or_default(),
            ticket.price.map(|price| price.currency().code()).unwrap_or_default(),
            ticket.status.as_str(),
            &number,
            &generation,
            &id,
            ticket.error.as_deref().unwrap_or_default(),
            ticket.holder.phone.as_deref().unwrap_or_default(),
            ticket.holder.chat.as_deref().unwrap_or_default(),
        ]);
    }

    /// Takes what was written since the last call.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    fn row<'c>(&mut self, cells: impl IntoIterator<Item = &'c str>) {
        for (place, cell) in cells.into_iter().enumerate() {
            if place > 0 {
                self.text.push(',');
            }
            self.cell(cell);
        }
        self.text.push_str("\r\n");
    }

    fn cell(&mut self, cell: &str) {
        let cell = spreadsheet::guarded(cell);
        let needs_quotes =
            cell.contains(spreadsheet::DELIMITERS) || cell.contains('"') || cell.trim() != cell;
        if needs_quotes {
            let doubled = cell.replace('"', "\"\"");
            self.text.push_str(&format!("\"{doubled}\""));
        } else {
            self.text.push_str(&cell);
        }
    }
}

/// Whether a file begins with a byte order mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// It does.
    Written,
    /// It does not.
    Absent,
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use stampede_model::{
        BatchId, Currency, EventId, Holder, Money, TicketId, TicketStatus, Timestamp,
    };

    use super::*;
    use crate::{Format, Guest, Rules, read};

    fn ticket(name: &str, seat: Option<&str>, price: Option<&str>) -> Ticket {
        Ticket {
            id: TicketId::from_bytes([1; 16]),
            event_id: EventId::from_bytes([2; 16]),
            batch_id: BatchId::from_bytes([3; 16]),
            owner: "ann".into(),
            index: 1,
            serial: 7,
            generation: 1,
            signing_key: None,
            holder: Holder {
                name: name.into(),
                phone: Some("+79991234567".into()),
                seat: seat.map(str::to_owned),
                ..Holder::default()
            },
            price: price.and_then(|price| Money::parse(price, Currency::USD).ok()),
            status: TicketStatus::Pending,
            error: None,
            pdf: None,
            processed_by: None,
            processed_at: None,
            created_at: Timestamp::UNIX_EPOCH,
            updated_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn formulas_are_written_as_text_and_read_as_they_were() {
        let names = [
            "=SUM(A1)",
            "+49 170",
            "-x",
            "@x",
            "'=1",
            "''=1",
            "O'Neil",
            "a\"b,c;d",
            "Зоя",
            "'x",
            "x;=HYPERLINK(\"http://x\");",
            "x,+1",
            "x;\"=1",
            "Ann, +1",
            "x;'=1",
        ];
        let mut written = Written::begin(Mark::Written);
        for name in names {
            written.add(&ticket(name, Some("=1+1"), Some("5")));
        }
        let text = written.take();
        assert!(text.starts_with("\u{feff}name,email,seat,price,currency,"));
        for cell in text.split([',', ';', '\n']) {
            assert!(!cell.trim_matches('"').starts_with(['=', '+', '-', '@']), "{cell}");
        }
        let (mut guests, rules) = (Vec::new(), Rules { currency: Currency::USD, most: 100 });
        let mut keep = |guest: Guest| {
            guests.push(guest);
            Ok(())
        };
        let report = read(Cursor::new(&text), Format::Csv(None), None, rules, &mut keep).unwrap();
        assert_eq!((report.mistakes.count, report.remarks.len()), (0, 0), "{report:?}");
        let read: Vec<&str> = guests.iter().map(|guest| guest.name.as_str()).collect();
        assert_eq!(read, names);
        assert!(guests.iter().all(|guest| guest.seat.as_deref() == Some("=1+1")));
        assert!(guests.iter().all(|guest| guest.price.as_deref() == Some("5.00")));
        assert!(guests.iter().all(|guest| guest.phone.as_deref() == Some("+79991234567")));
    }
}

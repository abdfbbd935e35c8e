//! The delimiter of a CSV file and the meaning of its columns, found by looking at the header.

use std::io::Read;

use crate::Error;
use crate::mistakes::{Remark, shown, unknown};
use crate::records::{MOST_CELLS, Record, Records};

/// The fields of a guest that a column can hold, for messages.
pub(crate) const KNOWN: [&str; 6] = ["name", "email", "seat", "price", "phoneNumber", "chatId"];

/// Names of columns that hold an address for mail, in small letters and without punctuation.
pub const MAIL_NAMES: &[&str] = &[
    "email",
    "e mail",
    "mail",
    "email address",
    "e mail address",
    "почта",
    "эл почта",
    "электронная почта",
    "емейл",
    "имейл",
];
/// Names of columns that hold a telephone number, those that say it best first.
pub const PHONE_NAMES: &[&str] = &[
    "phone",
    "phonenumber",
    "phone number",
    "mobile",
    "mobile phone",
    "cell",
    "tel",
    "telephone",
    "msisdn",
    "whatsapp",
    "телефон",
    "номер телефона",
    "мобильный",
    "мобильный телефон",
    "сотовый",
    "номер",
];
/// Names of columns that hold a chat of Telegram, those that say it best first.
pub const CHAT_NAMES: &[&str] =
    &["chat", "chat id", "chatid", "telegram", "telegram id", "чат", "телеграм"];

/// Ignored columns that are told.
const TOLD: usize = 20;

/// The character between two cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delimiter {
    /// `,`
    Comma,
    /// `;`
    Semicolon,
    /// A tab.
    Tab,
}

impl Delimiter {
    /// All, the most common first.
    pub const ALL: [Self; 3] = [Self::Comma, Self::Semicolon, Self::Tab];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Comma => "comma",
            Self::Semicolon => "semicolon",
            Self::Tab => "tab",
        }
    }

    /// Reads a word or the character itself.
    pub fn from_word(word: &str) -> Option<Self> {
        let is_it = |delimiter: &Self| {
            delimiter.as_str() == word || word.as_bytes() == [delimiter.as_byte()]
        };
        Self::ALL.into_iter().find(is_it)
    }

    /// The byte.
    pub fn as_byte(self) -> u8 {
        match self {
            Self::Comma => b',',
            Self::Semicolon => b';',
            Self::Tab => b'\t',
        }
    }
}

/// The meaning of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    Name,
    Email,
    Phone,
    Chat,
    Seat,
    Price,
    /// The currency of the price, which must be the event's.
    Currency,
    /// A column of our own files that says nothing about a guest.
    Ours,
}

/// Names of columns, in small letters and without punctuation.
const NAMES: [(Meaning, &[&str]); 8] = [
    (
        Meaning::Name,
        &[
            "name",
            "guest",
            "holder",
            "full name",
            "fullname",
            "guest name",
            "holder name",
            "attendee",
            "attendee name",
            "имя",
            "фио",
            "гость",
            "имя гостя",
            "имя и фамилия",
            "фамилия и имя",
            "участник",
        ],
    ),
    (Meaning::Email, MAIL_NAMES),
    (Meaning::Phone, PHONE_NAMES),
    (Meaning::Chat, CHAT_NAMES),
    (Meaning::Seat, &["seat", "place", "seat number", "class", "место", "класс", "номер места"]),
    (Meaning::Price, &["price", "amount", "цена", "стоимость"]),
    (Meaning::Currency, &["currency", "валюта"]),
    (Meaning::Ours, &["ticket", "number", "status", "generation", "error", "pdf"]),
];

/// A column of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name in the header, as it is shown.
    pub name: String,
    /// The field of a guest that it holds; `None`: it was ignored.
    pub field: Option<&'static str>,
}

/// The columns of a file.
#[derive(Debug)]
pub(crate) struct Columns {
    meanings: Vec<Option<Meaning>>,
    pub(crate) shown: Vec<Column>,
    pub(crate) remarks: Vec<Remark>,
}

impl Columns {
    /// Reads the header.
    pub(crate) fn of(header: &Record) -> Result<Self, Error> {
        if header.beyond > 0 {
            return Err(Error::Unreadable(format!(
                "the first line has {} columns; a table may have at most {MOST_CELLS}",
                header.cells().len() + header.beyond
            )));
        }
        let names: Vec<String> =
            header.cells().iter().map(|cell| cell.text().trim().to_owned()).collect();
        let mut meanings: Vec<Option<Meaning>> = names.iter().map(|name| meaning(name)).collect();
        if !is_ours(&names) {
            // In other files, a column such as "number" may hold something about the guest.
            let not_ours = |found: &Meaning| *found != Meaning::Ours;
            meanings.iter_mut().for_each(|found| *found = found.filter(not_ours));
        }
        for (wanted, known) in [(Meaning::Phone, PHONE_NAMES), (Meaning::Chat, CHAT_NAMES)] {
            keep_best(&names, &mut meanings, wanted, known);
        }
        for wanted in [Meaning::Name, Meaning::Email, Meaning::Seat, Meaning::Price] {
            let mut places =
                meanings.iter().zip(&names).filter(|(found, _)| **found == Some(wanted));
            if let (Some((_, first)), Some((_, second))) = (places.next(), places.next()) {
                return Err(Error::Unreadable(format!(
                    "two columns hold the {}: {:?} and {:?}; remove or rename one of them",
                    wanted.field().unwrap_or_default(),
                    shown(first),
                    shown(second)
                )));
            }
        }
        if !meanings.contains(&Some(Meaning::Name)) {
            return Err(no_name(&names));
        }
        let ignored =
            names.iter().zip(&meanings).filter(|(name, found)| found.is_none() && !name.is_empty());
        let remarks = ignored.take(TOLD).map(|(name, _)| Remark {
            name: shown(name),
            message: format!("was ignored: it {}", ignored_for(name)),
        });
        let remarks = remarks.collect();
        let column = |(name, found): (&String, &Option<Meaning>)| Column {
            name: shown(name),
            field: found.and_then(Meaning::field),
        };
        let shown = names.iter().zip(&meanings).map(column).collect();
        Ok(Self { meanings, shown, remarks })
    }

    /// The meaning of the column at a place.
    pub(crate) fn at(&self, place: usize) -> Option<Meaning> {
        self.meanings.get(place).copied().flatten()
    }

    pub(crate) fn count(&self) -> usize {
        self.meanings.len()
    }
}

impl Meaning {
    fn field(self) -> Option<&'static str> {
        match self {
            Self::Name => Some("name"),
            Self::Email => Some("email"),
            Self::Phone => Some("phoneNumber"),
            Self::Chat => Some("chatId"),
            Self::Seat => Some("seat"),
            Self::Price => Some("price"),
            Self::Currency => Some("currency"),
            Self::Ours => None,
        }
    }
}

/// Keeps the one of several columns whose name says best what it holds: lists have "Mobile" beside "Phone". The others are
/// ignored.
fn keep_best(names: &[String], meanings: &mut [Option<Meaning>], wanted: Meaning, known: &[&str]) {
    let rank = |place: &usize| {
        let (spaced, joined) = plain_name(&names[*place]);
        known.iter().position(|known| *known == spaced || *known == joined)
    };
    let places = (0..meanings.len()).filter(|place| meanings[*place] == Some(wanted));
    let best = places.min_by_key(rank);
    for (place, found) in meanings.iter_mut().enumerate() {
        if *found == Some(wanted) && Some(place) != best {
            *found = None;
        }
    }
}

/// Why a column is ignored.
fn ignored_for(name: &str) -> String {
    match meaning(name) {
        Some(Meaning::Phone | Meaning::Chat) => "holds the same as another column".to_owned(),
        _ => unknown(name, &KNOWN),
    }
}

fn no_name(names: &[String]) -> Error {
    let found: Vec<String> =
        names.iter().take(TOLD).map(|name| format!("{:?}", shown(name))).collect();
    Error::Unreadable(format!(
        "no column is called \"name\" (or guest, holder, full name, имя, фио); the first line must name the columns, and \
         has: {}",
        found.join(", ")
    ))
}

/// Whether a file was written by us (`written.rs`), perhaps without some columns: those that say nothing about a guest
/// are ours only together.
fn is_ours(names: &[String]) -> bool {
    let has = |name: &str| names.iter().any(|found| found.eq_ignore_ascii_case(name));
    ["status", "number", "generation", "ticket"].into_iter().all(has)
}

/// Whether a column says something about a guest.
pub(crate) fn is_known(name: &str) -> bool {
    meaning(name).is_some()
}

/// The meaning of a column by its name.
fn meaning(name: &str) -> Option<Meaning> {
    // "Ф.И.О." is one word, "full_name" are two.
    let (spaced, joined) = plain_name(name);
    let is_it = |names: &&(Meaning, &[&str])| {
        names.1.iter().any(|known| *known == spaced || *known == joined)
    };
    NAMES.iter().find(is_it).map(|(meaning, _)| *meaning)
}

/// The name of a column in small letters and without punctuation: its words with spaces between them, and without.
pub fn plain_name(name: &str) -> (String, String) {
    let plain: String = name
        .chars()
        .map(|c| if c.is_alphanumeric() { c } else { ' ' })
        .flat_map(char::to_lowercase)
        .collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    (words.join(" "), words.concat())
}

/// What the first bytes of a file tell.
#[derive(Debug, PartialEq, Eq)]
pub struct Looked {
    /// The delimiter.
    pub delimiter: Delimiter,
    /// Bytes of a first line that only names the delimiter (`sep=;`), as some spreadsheets write it.
    pub skipped: usize,
}

/// Finds the delimiter of a file by its first bytes: the one with which the header has most known columns, then most columns.
pub fn look(head: &[u8], is_known: &dyn Fn(&str) -> bool) -> Looked {
    if let Some((delimiter, skipped)) = declared(head) {
        return Looked { delimiter, skipped };
    }
    let score = |delimiter: &Delimiter| {
        let (known, cells) = header_of(head, *delimiter, is_known);
        // Of equal ones the first is meant.
        let place = Delimiter::ALL.iter().position(|d| d == delimiter).unwrap_or_default();
        (known, cells, std::cmp::Reverse(place))
    };
    let delimiter = Delimiter::ALL.into_iter().max_by_key(score).unwrap_or(Delimiter::Comma);
    Looked { delimiter, skipped: 0 }
}

/// Known columns and all columns of the header, if this were the delimiter.
fn header_of(
    head: impl Read,
    delimiter: Delimiter,
    is_known: &dyn Fn(&str) -> bool,
) -> (usize, usize) {
    let mut header = Record::default();
    match Records::new(head, delimiter.as_byte(), 1).next(&mut header) {
        Ok(true) => {
            let known = header.cells().iter().filter(|cell| is_known(&cell.text()));
            (known.count(), header.cells().len())
        }
        _ => (0, 0),
    }
}

/// A first line `sep=;`: the delimiter, and the bytes of the line.
fn declared(head: &[u8]) -> Option<(Delimiter, usize)> {
    let (word, rest) = head.split_at_checked(4)?;
    let (byte, rest) = rest.split_first()?;
    if !word.eq_ignore_ascii_case(b"sep=") {
        return None;
    }
    let delimiter = Delimiter::ALL.into_iter().find(|delimiter| delimiter.as_byte() == *byte)?;
    let end = match rest {
        [b'\r', b'\n', ..] => 2,
        [b'\r' | b'\n', ..] => 1,
        _ => return None,
    };
    Some((delimiter, 5 + end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delimiter(head: &str) -> Delimiter {
        look(head.as_bytes(), &is_known).delimiter
    }

    #[test]
    fn the_delimiter_is_found_by_the_columns_that_it_makes() {
        assert_eq!(delimiter("name,email\nAnn;x,a@b.c"), Delimiter::Comma);
        assert_eq!(delimiter("Name;E-Mail;Price, incl. tax, fees, all\n"), Delimiter::Semicolon);
        assert_eq!(delimiter("имя\tместо\n"), Delimiter::Tab);
        assert_eq!(delimiter("\"a;b;c\",name\n"), Delimiter::Comma);
        assert_eq!(delimiter("name\nAnn"), Delimiter::Comma);
        assert_eq!(delimiter(""), Delimiter::Comma);
        let declared = look(b"sep=;\r\nname;seat\r\n", &is_known);
        assert_eq!(declared, Looked { delimiter: Delimiter::Semicolon, skipped: 7 });
        assert_eq!(Delimiter::from_word("\t"), Some(Delimiter::Tab));
        assert_eq!(Delimiter::from_word("pipe"), None);
    }

    #[test]
    fn columns_are_known_by_many_names() {
        for (name, expected) in [
            ("Name", Some(Meaning::Name)),
            ("FULL_NAME", Some(Meaning::Name)),
            ("Ф.И.О.", Some(Meaning::Name)),
            (" Гость ", Some(Meaning::Name)),
            ("E-Mail", Some(Meaning::Email)),
            ("Эл. почта", Some(Meaning::Email)),
            ("Место", Some(Meaning::Seat)),
            ("Цена", Some(Meaning::Price)),
            ("status", Some(Meaning::Ours)),
            ("Phone", Some(Meaning::Phone)),
            ("Телефон", Some(Meaning::Phone)),
            ("chat_id", Some(Meaning::Chat)),
            ("notes", None),
            ("", None),
        ] {
            assert_eq!(meaning(name), expected, "{name}");
        }
    }

    fn columns(header: &str) -> Result<Columns, String> {
        let mut record = Record::default();
        let delimiter = look(header.as_bytes(), &is_known).delimiter.as_byte();
        Records::new(header.as_bytes(), delimiter, 1).next(&mut record).unwrap();
        Columns::of(&record).map_err(|error| error.to_string())
    }

    #[test]
    fn unknown_columns_are_told_with_the_name_that_was_probably_meant() {
        let columns = columns("guest,emial,notes").unwrap();
        let told: Vec<&str> =
            columns.remarks.iter().map(|remark| remark.message.as_str()).collect();
        assert!(told[0].contains("did you mean email?"), "{told:?}");
        assert!(told[1].contains("known are name, email, seat, price"), "{told:?}");
        assert_eq!(columns.shown[0], Column { name: "guest".into(), field: Some("name") });
        assert_eq!(columns.shown[2].field, None);
        let columns = self::columns("name,number,status").unwrap();
        assert_eq!(columns.remarks.len(), 2, "{:?}", columns.remarks);
        let columns = self::columns("name,status,number,generation,ticket").unwrap();
        assert_eq!(columns.remarks.len(), 0, "{:?}", columns.remarks);
    }

    #[test]
    fn of_two_telephone_numbers_the_one_with_the_better_name_is_taken() {
        let columns = columns("name,номер,Mobile,Phone,Telegram").unwrap();
        let fields: Vec<_> = columns.shown.iter().map(|column| column.field).collect();
        assert_eq!(fields, [Some("name"), None, None, Some("phoneNumber"), Some("chatId")]);
        let told: Vec<&str> =
            columns.remarks.iter().map(|remark| remark.message.as_str()).collect();
        assert_eq!(told, ["was ignored: it holds the same as another column"; 2]);
    }

    #[test]
    fn a_header_that_does_not_name_the_guest_or_names_it_twice_is_refused() {
        let told = columns("Ann Smith,ann@example.com").unwrap_err();
        assert!(told.contains("\"Ann Smith\", \"ann@example.com\""), "{told}");
        let told = columns("name,guest").unwrap_err();
        assert!(told.contains("two columns hold the name: \"name\" and \"guest\""), "{told}");
        let told = columns(&vec!["x"; 100_000].join(",")).unwrap_err();
        assert!(told.contains("100000 columns"), "{told}");
    }
}

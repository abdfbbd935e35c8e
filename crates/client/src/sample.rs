//! The event and the guests that `stampede demo` and the benchmarks order tickets for.

use crate::{Guest, NewEvent};

/// An event.
pub fn event() -> NewEvent {
    NewEvent {
        name: "Midsummer Night Festival".to_owned(),
        location: "Riverside Gardens, Riga".to_owned(),
        starts_at: "2027-06-23T19:30:00+03:00".to_owned(),
        time_zone: "Europe/Riga".to_owned(),
        currency: "EUR".to_owned(),
    }
}

/// The holder of a ticket: names in several scripts; every tenth seat is VIP.
pub fn guest(number: u32) -> Guest {
    const FIRST: [&str; 12] = [
        "Anna",
        "Иван",
        "Zoë",
        "Дарья",
        "Łukasz",
        "Ελένη",
        "José",
        "Ольга",
        "Søren",
        "Márta",
        "יעל",
        "ليلى",
    ];
    const LAST: [&str; 7] =
        ["Bērziņa", "Петров", "O’Connor", "Ковальчук", "Müller", "García", "Lindqvist"];
    let n = number as usize;
    let (row, place) = (number / 20, number % 20 + 1);
    let seat = if number.is_multiple_of(10) {
        "VIP".to_owned()
    } else {
        format!("Row {} · Seat {place}", row + 1)
    };
    Guest {
        name: format!("{} {}", FIRST[n % FIRST.len()], LAST[n % LAST.len()]),
        email: format!("guest{number}@example.com"),
        seat,
        price: if number.is_multiple_of(10) { "120.00" } else { "49.90" }.to_owned(),
    }
}

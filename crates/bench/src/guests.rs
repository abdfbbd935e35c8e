//! The event and the guests that benchmarks order tickets for.

use serde_json::{Value, json};

/// An event as the API takes it.
pub(crate) fn event() -> Value {
    json!({
        "name": "Midsummer Night Festival",
        "location": "Riverside Gardens, Riga",
        "startsAt": "2027-06-23T19:30:00+03:00",
        "timeZone": "Europe/Riga",
        "currency": "EUR",
    })
}

/// A ticket's holder as the API takes it: names in several scripts; every tenth seat is VIP.
pub(crate) fn guest(number: u32) -> Value {
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
    let is_vip = number.is_multiple_of(10);
    json!({
        "name": format!("{} {}", FIRST[n % FIRST.len()], LAST[n % LAST.len()]),
        "email": format!("guest{number}@example.com"),
        "seat": if is_vip { "VIP".to_owned() } else { format!("Row {} · Seat {place}", row + 1) },
        "price": if is_vip { "120.00" } else { "49.90" },
    })
}

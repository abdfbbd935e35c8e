//! Renders the sample ticket of the README: `cargo run --example sample_ticket -- ticket.pdf`.
//!
//! `pdftoppm -r 100 -png -singlefile ticket.pdf ticket` makes the picture of it.

use stampede_model::TicketDocument;
use stampede_template::{Template, Typesetter};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which file shall the ticket be written to?")?;
    let document = TicketDocument {
        id: "0198f3a2-7c41-7d20-9b1e-4f6a2c8d5e01".into(),
        code: "0198f3a2-7c41-7d20-9b1e-4f6a2c8d5e01".into(),
        index: 42,
        name: "Amelia Hartmann".into(),
        seat: Some("VIP · Row C, Seat 14".into()),
        price: Some("€48.00".into()),
        event: "Midsummer Night Festival".into(),
        location: "Tempelhofer Feld, Berlin".into(),
        starts: Some("Saturday, 20 June 2026, 19:30".into()),
        primary: "#667eea".into(),
        secondary: "#764ba2".into(),
    };
    std::fs::write(path, Typesetter::new(Template::default_ticket()).render(&document)?)?;
    Ok(())
}

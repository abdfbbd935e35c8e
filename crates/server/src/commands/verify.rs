//! `stampede verify`: tells whose a ticket is, and whether it is genuine.
//!
//! With the database the command also finds tickets that are void or superseded. With `--keys`, a file
//! from `GET /api/events/{id}/keys` or `GET /api/checkin/bundle`, it needs neither database nor network
//! (`offline.rs`); a bundle knows void and superseded tickets, too. Of a PDF only the QR codes count
//! (`pdf.rs`): they are what is scanned at the door.
//!
//! The exit code is 0 only if every ticket is to be accepted.

mod offline;
mod pdf;

use std::path::Path;

use anyhow::{Result, bail};
use serde_json::json;
use stampede_model::{Claims, Printable, Refusal, Token};
use stampede_store::{Error, Store, Verdict};
use stampede_ticketing::verification;
use stampede_wire::ticketing::verification::{Verification, VerifiedEvent};

use self::offline::{Known, Verified};
use crate::cli::Verify;
use crate::connect;
use crate::settings::Settings;

pub(crate) async fn run(settings: Settings, options: Verify) -> Result<()> {
    let texts = read_texts(&options).await?;
    let reports: Vec<Report> = if options.keys.is_empty() {
        let store = open_store(&settings).await?;
        let mut reports = Vec::new();
        for text in &texts {
            let verdict = match text.parse::<Token>() {
                Ok(token) => store.verify(&token).await.map_err(explained)?,
                Err(refusal) => Verdict::refused(refusal),
            };
            reports.push(Report::of_verdict(&verdict));
        }
        store.close().await;
        reports
    } else {
        let files = offline::read(&options.keys)?;
        texts.iter().map(|text| Report::offline(text, &files)).collect()
    };
    if options.json {
        let accepted = reports.iter().all(|report| report.refusal.is_none());
        let tickets: Vec<&Verification> = reports.iter().map(|report| &report.json).collect();
        println!("{}", json!({ "accepted": accepted, "tickets": tickets }));
    } else {
        reports.iter().for_each(Report::print);
    }
    match reports.iter().filter(|report| report.refusal.is_some()).count() {
        0 => Ok(()),
        _ if reports.len() == 1 => bail!("the ticket is not to be accepted"),
        refused => bail!("{refused} of {} tickets are not to be accepted", reports.len()),
    }
}

/// The token that was typed, or the tokens in the QR codes of a PDF.
async fn read_texts(options: &Verify) -> Result<Vec<String>> {
    let ticket = &options.ticket;
    let path = Path::new(ticket);
    if path.is_file() {
        let texts = pdf::codes(path).await?;
        if !options.json {
            println!("Read from the QR codes of {}: {}", path.display(), texts.len());
        }
        return Ok(texts);
    }
    if ticket.to_ascii_lowercase().ends_with(".pdf") || ticket.contains('/') {
        bail!("there is no file {ticket}");
    }
    // Spaces around a copied token are removed; a token has one spelling only.
    Ok(vec![ticket.trim().to_owned()])
}

async fn open_store(settings: &Settings) -> Result<Store> {
    let instead =
        "verify without a database: --keys FILE, with what GET /api/events/{id}/keys answers";
    connect::existing_store(settings, instead).await
}

fn explained(error: Error) -> anyhow::Error {
    let older = matches!(error, Error::Refused(_));
    let error = anyhow::Error::from(error);
    match older {
        true => error.context("the database may be of an older version; start the server once"),
        false => error,
    }
}

/// The answer about one ticket.
struct Report {
    refusal: Option<Refusal>,
    lines: Vec<(&'static str, String)>,
    /// Details that could not be looked up.
    caveat: Option<String>,
    /// The verdict for programs, as `POST /api/verify` answers it.
    json: Verification,
}

impl Report {
    fn of_verdict(verdict: &Verdict) -> Self {
        let mut lines = Vec::new();
        if let (Some(claims), Some(event)) = (&verdict.claims, &verdict.event) {
            lines.push(("Event", format!("{} ({})", event.details.name, event.id)));
            lines.push(("Number", number(claims)));
            if let Some(ticket) = &verdict.ticket {
                lines.push(("Holder", ticket.holder.name.clone()));
                lines.extend(ticket.holder.seat.clone().map(|seat| ("Seat", seat)));
                lines.push(("Ticket", format!("{}, {}", ticket.id, ticket.status.as_str())));
            }
            lines.push(("Signed by", signed_by(claims)));
        }
        let json = told_by(verification(verdict), "database");
        Self { refusal: verdict.refusal, lines, caveat: None, json }
    }

    fn offline(text: &str, files: &[Known]) -> Self {
        let Verified { proven, refusal } = offline::verify(text, files);
        let Some((claims, known)) = proven else {
            let refused = refusal.unwrap_or(Refusal::Malformed);
            let json = told_by(verification(&Verdict::refused(refused)), "keys");
            return Self { refusal: Some(refused), lines: Vec::new(), caveat: None, json };
        };
        let name = known.ring.event_name.clone();
        let lines = vec![
            ("Event", format!("{name} ({})", claims.event)),
            ("Number", number(&claims)),
            ("Signed by", signed_by(&claims)),
        ];
        let event = VerifiedEvent { id: claims.event, name, starts_at: None };
        let json = Verification::new(refusal, Some(claims), Some(event), None);
        Self { refusal, lines, caveat: Some(known.caveat()), json: told_by(json, known.source()) }
    }

    fn print(&self) {
        match self.refusal {
            None => println!("GENUINE"),
            Some(refusal) if refusal.is_of_genuine_token() => {
                println!("NOT VALID: genuine, but {refusal} ({})", refusal.as_str());
            }
            Some(refusal) => println!("NOT GENUINE: {refusal} ({})", refusal.as_str()),
        }
        for (name, value) in &self.lines {
            println!("  {name:<10} {}", Printable::line(value));
        }
        if let Some(caveat) = &self.caveat {
            println!("  {caveat}.");
        }
    }
}

/// Adds the source of the verdict: the database, or the keys alone, which do not know of withdrawn tickets.
fn told_by(verdict: Verification, source: &str) -> Verification {
    Verification { checked_with: Some(source.to_owned()), ..verdict }
}

fn number(claims: &Claims) -> String {
    format!("{:04}", claims.serial)
}

fn signed_by(claims: &Claims) -> String {
    format!("key {}, generation {}", claims.key, claims.generation)
}

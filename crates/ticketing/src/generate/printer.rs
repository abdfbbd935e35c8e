//! Where a ticket is printed: in this process, or apart.
//!
//! | template | printed |
//! |---|---|
//! | ours | here |
//! | an organiser's that is stamped | here; its first ticket in this process apart |
//! | an organiser's that is suspected | apart |
//! | typeset | apart, always |
//! | set aside | not at all |
//!
//! Tickets that are printed apart, and the one that has an organiser's template compiled, take a place in the slow lane.
//! Of tickets that need a template that is not ready, one makes it ready (`warming.rs`).

use std::sync::Arc;

use stampede_model::{Event, Ticket, TicketDocument};
use stampede_press::{Error, Ready, Room};

use super::{Before, Generated, unprinted};
use crate::slow_lane::{Place, Urgency};
use crate::suspects::{self, Verdict};
use crate::warming::{self, Lead};
use crate::{Ticketing, test_hooks};

/// The template of a ticket, and where the ticket is printed.
pub(super) struct Printer {
    pub(super) template: Arc<Ready>,
    site: Site,
    before: Before,
    /// The template's name among suspects.
    suspect: String,
    /// Held until the ticket is printed, if that takes its time.
    _place: Option<Place>,
    /// Held until the ticket is printed, if it is the first of its template.
    _lead: Option<Lead>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Site {
    Here,
    Apart,
}

impl Ticketing {
    /// Finds the template, and a place if printing takes its time.
    pub(super) async fn printer(
        &self,
        ticket: &Ticket,
        event: &Event,
        before: Before,
    ) -> Result<Printer, Generated> {
        let shared = &*self.shared;
        let found =
            shared.press.find(event).await.map_err(|error| unprinted(&shared.outages, &error))?;
        let is_organisers = found.is_organisers();
        let suspect = suspects::name(&event.owner, found.revision());
        let verdict = match is_organisers {
            true => self.verdict(&suspect, before.crashes).await?,
            false => Verdict::Free,
        };
        let enter = |urgency| {
            shared.slow_lane.enter(&event.owner, urgency).map(Some).map_err(Generated::Later)
        };
        let (mut place, mut lead) = (None, None);
        let key = found.key().to_owned();
        if !found.is_in_memory() {
            lead = self.lead(&key).await?;
            if lead.is_none() && !found.is_in_memory() {
                return Err(Generated::Later(warming::SHORTEST));
            }
            if lead.is_some() && is_organisers {
                place = enter(Urgency::First)?;
            }
        }
        let template = found.ready().await.map_err(|error| unprinted(&shared.outages, &error))?;
        let is_slow = verdict == Verdict::Suspected || template.slow_because().is_some();
        if is_slow {
            // Others of the template need not wait for this one: each takes its own time.
            lead = None;
            if place.is_none() {
                place = enter(if ticket.is_vip() { Urgency::Vip } else { Urgency::Normal })?;
            }
        } else if template.is_apart() {
            if lead.is_none() {
                lead = self.lead(&key).await?;
            }
            if lead.is_none() && template.is_apart() {
                return Err(Generated::Later(warming::SHORTEST));
            }
            if place.is_none() {
                place = enter(Urgency::First)?;
            }
        }
        let is_apart = is_slow || template.is_apart();
        if !is_apart {
            (place, lead) = (None, None);
        }
        let site = if is_apart { Site::Apart } else { Site::Here };
        Ok(Printer { template, site, before, suspect, _place: place, _lead: lead })
    }

    /// The lead among tickets of a template that is not ready; `None` if another one has just made it ready.
    async fn lead(&self, key: &str) -> Result<Option<Lead>, Generated> {
        self.shared.warming.lead(key).await.map_err(Generated::Later)
    }

    /// Prints a ticket. The PDF takes up room until the second value is dropped.
    pub(super) async fn print(
        &self,
        printer: &Printer,
        document: &TicketDocument,
    ) -> Result<(Vec<u8>, Option<Room>), Generated> {
        let (shared, template) = (&*self.shared, &*printer.template);
        if printer.site == Site::Here {
            test_hooks::die_of_poison(document);
            let pdf = shared.press.pdf(template, document).await;
            return pdf
                .map(|(pdf, room)| (pdf, Some(room)))
                .map_err(|error| unprinted(&shared.outages, &error));
        }
        let pdf = shared.press.pdf_apart(template, document).await;
        if template.is_organisers() {
            match &pdf {
                Ok(_) => shared.suspects.worked(&printer.suspect).await,
                // One ticket counts once, however often it is tried: it must not set aside all others.
                Err(Error::Crashed(reason)) if printer.before.attempts == 0 => {
                    shared.suspects.strike(&printer.suspect, reason).await;
                }
                Err(_) => {}
            }
        }
        pdf.map(|pdf| (pdf, None)).map_err(|error| unprinted(&shared.outages, &error))
    }

    /// The verdict on an organiser's template. A job that lost its worker puts it under suspicion.
    async fn verdict(&self, suspect: &str, crashes: u32) -> Result<Verdict, Generated> {
        let suspects = &self.shared.suspects;
        match suspects.verdict(suspect).await {
            Verdict::SetAside(reason) => Err(Generated::Refused(reason)),
            Verdict::Free if crashes > 0 => {
                suspects.suspect(suspect).await;
                Ok(Verdict::Suspected)
            }
            verdict => Ok(verdict),
        }
    }
}

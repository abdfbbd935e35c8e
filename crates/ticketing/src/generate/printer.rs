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
//! Tickets that are printed apart, and those that wait for a template to be compiled, take a place in the slow lane.

use std::sync::Arc;

use stampede_model::{Event, Ticket, TicketDocument};
use stampede_press::{Error, Ready};
use tokio::sync::OwnedSemaphorePermit;

use super::{Before, Generated, unprinted};
use crate::slow_lane::{Place, Urgency};
use crate::suspects::Verdict;
use crate::{Ticketing, test_hooks};

/// The template of a ticket, and where the ticket is printed.
pub(super) struct Printer {
    pub(super) template: Arc<Ready>,
    site: Site,
    before: Before,
    /// Held until the ticket is printed, if that takes its time.
    _place: Option<Place>,
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
        let verdict = match is_organisers {
            true => self.verdict(found.revision(), before.crashes).await?,
            false => Verdict::Free,
        };
        let enter = || {
            let urgency = if ticket.is_vip() { Urgency::Vip } else { Urgency::Normal };
            shared.slow_lane.enter(&event.owner, urgency).map_err(Generated::Later)
        };
        let must_wait = is_organisers && !found.is_in_memory();
        let mut place = if must_wait { Some(enter()?) } else { None };
        let template = found.ready().await.map_err(|error| unprinted(&shared.outages, &error))?;
        let is_apart = verdict == Verdict::Suspected || template.is_apart();
        if !is_apart {
            place = None;
        } else if place.is_none() {
            place = Some(enter()?);
        }
        let site = if is_apart { Site::Apart } else { Site::Here };
        Ok(Printer { template, site, before, _place: place })
    }

    /// Prints a ticket. The PDF takes up room until the second value is dropped.
    pub(super) async fn print(
        &self,
        printer: &Printer,
        document: &TicketDocument,
    ) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>), Generated> {
        let (shared, template) = (&*self.shared, &*printer.template);
        if printer.site == Site::Here {
            let room = shared.press.room(template).await;
            test_hooks::die_of_poison(document);
            let pdf = shared.press.pdf(template, document).await;
            return pdf.map(|pdf| (pdf, room)).map_err(|error| unprinted(&shared.outages, &error));
        }
        let pdf = shared.press.pdf_apart(template, document).await;
        if template.is_organisers() {
            match &pdf {
                Ok(_) => shared.suspects.worked(template.revision()).await,
                // One ticket counts once, however often it is tried: it must not set aside all others.
                Err(Error::Crashed(reason)) if printer.before.attempts == 0 => {
                    shared.suspects.strike(template.revision(), reason).await;
                }
                Err(_) => {}
            }
        }
        pdf.map(|pdf| (pdf, None)).map_err(|error| unprinted(&shared.outages, &error))
    }

    /// The verdict on an organiser's template. A job that lost its worker puts it under suspicion.
    async fn verdict(&self, revision: &str, crashes: u32) -> Result<Verdict, Generated> {
        let suspects = &self.shared.suspects;
        match suspects.verdict(revision).await {
            Verdict::SetAside(reason) => Err(Generated::Refused(reason)),
            Verdict::Free if crashes > 0 => {
                suspects.suspect(revision).await;
                Ok(Verdict::Suspected)
            }
            verdict => Ok(verdict),
        }
    }
}

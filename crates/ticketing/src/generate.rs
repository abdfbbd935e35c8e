//! Generating the PDF of one ticket: read, sign, print, put, record.
//!
//! It may run twice for one ticket (a crash, a lost lock): equal data gives equal bytes under the same name,
//! and completing a completed ticket changes no counter. A ticket that is edited meanwhile stays pending,
//! because the completion names the version of the ticket it has seen.

mod printer;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::{Duration, Instant};

use stampede_model::{Pdf, Ticket, TicketDocument, TicketId, TicketStatus, Timestamp};
use stampede_store::{Completion, Failure};

use crate::completions::{Finished, Recorded};
use crate::outages::{Outage, Outages};
use crate::{Ticketing, test_hooks};

/// Pause of a ticket while the database or the disk is away. It costs no attempt.
const OUTAGE_PAUSE: Duration = Duration::from_secs(2);

/// Pause before a ticket that was changed while its PDF was made is made again.
const MAKE_AGAIN: Duration = Duration::from_millis(10);

/// What became of an attempt.
pub(crate) enum Generated {
    /// The PDF is made and recorded.
    Made(Made),
    /// Nothing had to be done, for this reason.
    Skipped(&'static str),
    /// Not now: try again after this time. It costs no attempt.
    Later(Duration),
    /// The ticket could not be made, for this reason. It costs an attempt.
    NotMade(String),
    /// The ticket will not be made, for this reason.
    Refused(String),
}

/// What happened to the job of a ticket before this run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Before {
    /// Attempts that failed.
    pub(crate) attempts: u32,
    /// Workers that died, or lost the job's lock.
    pub(crate) crashes: u32,
}

/// A PDF that was made.
pub(crate) struct Made {
    /// Its address.
    pub(crate) pdf_path: String,
    /// Duration of the whole attempt.
    pub(crate) duration: Duration,
    /// Microseconds of each step; benchmarks and Bull Board show them.
    pub(crate) steps_us: BTreeMap<&'static str, u64>,
}

/// Measures the steps of one attempt.
struct Steps {
    started: Instant,
    last: Instant,
    us: BTreeMap<&'static str, u64>,
}

impl Steps {
    fn start() -> Self {
        let now = Instant::now();
        Self { started: now, last: now, us: BTreeMap::new() }
    }

    fn done(&mut self, step: &'static str) {
        self.us.insert(step, self.last.elapsed().as_micros() as u64);
        self.last = Instant::now();
    }
}

impl Ticketing {
    /// Makes the PDF of a ticket, unless it is there already.
    pub(crate) async fn generate(&self, ticket_id: TicketId, before: Before) -> Generated {
        self.try_generate(ticket_id, before).await.unwrap_or_else(|early| early)
    }

    /// `Err`: ended early, in the way that the value says.
    async fn try_generate(
        &self,
        ticket_id: TicketId,
        before: Before,
    ) -> Result<Generated, Generated> {
        let shared = &*self.shared;
        let outages = &shared.outages;
        let mut steps = Steps::start();
        let row = shared.reader.read(ticket_id).await;
        let row = row.map_err(|error| unstored(&outages.reading, &error))?;
        let Some((ticket, event)) = row else { return Ok(Generated::Skipped("deleted")) };
        if ticket.status == TicketStatus::Void {
            return Ok(Generated::Skipped("void"));
        }
        test_hooks::slow_down().await;
        steps.done("load");

        let token = shared.store.token(&ticket).await;
        let token = token.map_err(|error| unstored(&outages.reading, &error))?;
        let document = TicketDocument::new(&event, &ticket, &token);
        let printer = self.printer(&ticket, &event, before).await?;
        outages.reading.works();
        let template = &printer.template;
        let fingerprint = document.fingerprint(template.revision()).into_string();
        if ticket.status == TicketStatus::Completed && self.has_file(&ticket, &fingerprint).await {
            return Ok(Generated::Skipped("made before"));
        }
        steps.done("template");

        let began = Instant::now();
        let (bytes, room) = self.print(&printer, &document).await?;
        shared.counts.renders(template).observe(began.elapsed());
        drop(printer);
        outages.compiler.works();
        steps.done("render");

        let path = Ticket::pdf_path(ticket_id);
        let pdf_path = shared.files.address(&path).to_string();
        let pdf = Pdf::of(fingerprint, &bytes);
        if let Err(error) = shared.files.put(&path, bytes).await {
            // A full disk or a lost mount: tickets wait for the operator, they do not fail.
            return Ok(later(&outages.files, &error));
        }
        // The PDF is on the disk and no longer in memory; recording it takes longer than making it.
        drop(room);
        outages.files.works();
        steps.done("put");

        let completion = Completion {
            ticket_id,
            seen: ticket.updated_at,
            pdf: pdf.clone(),
            worker: shared.worker.clone(),
            at: Timestamp::now(),
        };
        let finished =
            Finished { completion, batch_id: ticket.batch_id, pdf_path: pdf_path.clone() };
        let recorded = shared.completions.commit(finished).await;
        let recorded = recorded.map_err(|error| unstored(&outages.recording, &error))?;
        outages.recording.works();
        match recorded {
            Recorded::Now => {}
            Recorded::Not if self.is_recorded(ticket_id, &pdf).await => {}
            Recorded::Not => {
                // The ticket was changed meanwhile: this PDF says what the ticket said before.
                let _ = shared.files.delete(&path).await;
                return Ok(Generated::Later(MAKE_AGAIN));
            }
        }
        steps.done("commit");
        let duration = steps.started.elapsed();
        Ok(Generated::Made(Made { pdf_path, duration, steps_us: steps.us }))
    }

    /// Records that a ticket cannot be made, and announces it. To be repeated until it succeeds.
    pub(crate) async fn give_up(&self, ticket_id: TicketId, reason: &str) -> Result<(), String> {
        let shared = &*self.shared;
        let failure = Failure {
            ticket_id,
            reason: reason.to_owned(),
            worker: shared.worker.clone(),
            at: Timestamp::now(),
        };
        let failed = shared.store.fail_tickets(&[failure]).await.map_err(|e| e.to_string())?;
        if failed.changed.contains(&ticket_id) {
            shared.counts.failed();
            for batch in failed.batches {
                shared.announcer.ticket_failed(&batch, ticket_id, reason, &shared.worker).await;
            }
        }
        Ok(())
    }

    /// The PDF that the ticket should have is in the files.
    async fn has_file(&self, ticket: &Ticket, fingerprint: &str) -> bool {
        let Some(pdf) = ticket.pdf.as_ref().filter(|pdf| pdf.fingerprint == fingerprint) else {
            return false;
        };
        let size = self.shared.files.size(&Ticket::pdf_path(ticket.id)).await;
        matches!(size, Ok(Some(size)) if size == pdf.size)
    }

    /// The store has exactly this PDF: the job ran before, up to its last step.
    async fn is_recorded(&self, id: TicketId, pdf: &Pdf) -> bool {
        let ticket = self.shared.store.ticket(id).await;
        matches!(ticket, Ok(Some(ticket)) if ticket.status == TicketStatus::Completed && ticket.pdf.as_ref() == Some(pdf))
    }
}

/// A ticket was not printed: an outage costs no attempt, a mistake of template or ticket does.
fn unprinted(outages: &Outages, error: &stampede_press::Error) -> Generated {
    match error {
        stampede_press::Error::Store(error) => unstored(&outages.reading, error),
        stampede_press::Error::Unavailable(_) => later(&outages.compiler, error),
        _ => Generated::NotMade(error.to_string()),
    }
}

/// The store failed: an outage costs no attempt.
fn unstored(outage: &Outage, error: &stampede_store::Error) -> Generated {
    use stampede_store::Error;
    match error {
        // Also the wrong secret for ticket keys, or a changed password: tickets wait for the operator.
        Error::Unavailable(_) | Error::Unusable(_) => later(outage, error),
        Error::Corrupt(_) | Error::Refused(_) => Generated::NotMade(error.to_string()),
    }
}

fn later(outage: &Outage, cause: &dyn Display) -> Generated {
    outage.postponed(cause);
    Generated::Later(OUTAGE_PAUSE)
}

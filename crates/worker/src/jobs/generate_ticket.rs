//! `generate-pdf`: load the ticket, sign it, print it, put the file, mark it completed.
//!
//! May run twice for one ticket (a crash, a lost lock): the same data gives the same bytes under the
//! same name, and completing a completed ticket changes no counter.

use std::time::{Duration, Instant};

use serde_json::json;
use stampede_broker::{Job, Outcome};
use stampede_model::{
    GenerateTicket, Pdf, Ticket, TicketDocument, TicketId, TicketStatus, Timestamp,
};
use stampede_store::{Completion, Error, Failure};

use crate::completions::{Finished, Recorded};
use crate::jobs::Jobs;

/// How long a ticket waits when the database or the disk is away. Costs no attempt.
const OUTAGE_PAUSE: Duration = Duration::from_secs(2);

/// When to look again at a ticket that was changed while its PDF was made.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Measures the steps of one job; bench and Bull Board show them.
struct Steps {
    started: Instant,
    last: Instant,
    us: serde_json::Map<String, serde_json::Value>,
}

impl Steps {
    fn start() -> Self {
        let now = Instant::now();
        Self { started: now, last: now, us: serde_json::Map::new() }
    }

    fn done(&mut self, step: &str) {
        self.us.insert(step.to_owned(), json!(self.last.elapsed().as_micros() as u64));
        self.last = Instant::now();
    }
}

impl Jobs {
    pub(super) async fn generate_ticket(&self, job: &Job) -> Outcome {
        let GenerateTicket { ticket_id, .. } = match GenerateTicket::parse(&job.data) {
            Ok(payload) => payload,
            Err(error) => return Outcome::Discard(error.to_string()),
        };
        let mut steps = Steps::start();
        let environment = &self.environment;

        let (ticket, event) = match self.loads.load(ticket_id).await {
            Ok(Some(row)) => row,
            Ok(None) => return skipped("deleted"),
            Err(error) => return outage_or_retry(&error),
        };
        if ticket.status == TicketStatus::Void {
            return skipped("void");
        }
        slow_down().await;
        steps.done("load");

        let token = match environment.store.token(&ticket).await {
            Ok(token) => token,
            Err(error) => return outage_or_retry(&error),
        };
        let document = TicketDocument::new(&event, &ticket, &token);
        let template = match environment.press.ready(&event).await {
            Ok(template) => template,
            Err(error) => return unprinted(&error),
        };
        let fingerprint = document.fingerprint(template.revision()).into_string();
        if ticket.status == TicketStatus::Completed && self.has_file(&ticket, &fingerprint).await {
            return skipped("made before");
        }
        steps.done("template");

        let bytes = match environment.press.pdf(&template, &document).await {
            Ok(bytes) => bytes,
            Err(error) => return unprinted(&error),
        };
        steps.done("render");

        let path = Ticket::pdf_path(ticket_id);
        let pdf_path = environment.files.address(&path).to_string();
        let pdf = Pdf::of(fingerprint, &bytes);
        if let Err(error) = environment.files.put(&path, bytes).await {
            // A full disk or a lost mount: the tickets wait for the operator, they do not fail.
            tracing::error!(ticket = %ticket_id, %error, retry_in = ?OUTAGE_PAUSE, "cannot write a PDF");
            return Outcome::Snooze(OUTAGE_PAUSE);
        }
        steps.done("put");

        let completion = Completion {
            ticket_id,
            seen: ticket.updated_at,
            pdf: pdf.clone(),
            worker: self.worker.clone(),
            at: Timestamp::now(),
        };
        let finished =
            Finished { completion, batch_id: ticket.batch_id, pdf_path: pdf_path.clone() };
        match self.completions.commit(finished).await {
            Ok(Recorded::Now) => {}
            Ok(Recorded::Not) if self.is_recorded(ticket_id, &pdf).await => {}
            Ok(Recorded::Not) => {
                // Changed meanwhile: what we have put there says what the ticket said before.
                let _ = environment.files.delete(&path).await;
                return Outcome::Snooze(LOOK_AGAIN);
            }
            Err(error) => return outage_or_retry(&error),
        }
        steps.done("commit");

        Outcome::Done(json!({
            "success": true,
            "pdf_path": pdf_path,
            "duration_ms": steps.started.elapsed().as_millis() as u64,
            "steps_us": steps.us,
        }))
    }

    /// Whether the PDF that the ticket should have is already in the files.
    async fn has_file(&self, ticket: &Ticket, fingerprint: &str) -> bool {
        let Some(pdf) = ticket.pdf.as_ref().filter(|pdf| pdf.fingerprint == fingerprint) else {
            return false;
        };
        let size = self.environment.files.size(&Ticket::pdf_path(ticket.id)).await;
        matches!(size, Ok(Some(size)) if size == pdf.size)
    }

    /// Whether the store has exactly this PDF: the job ran before, up to its last step.
    async fn is_recorded(&self, id: TicketId, pdf: &Pdf) -> bool {
        let ticket = self.environment.store.ticket(id).await;
        matches!(ticket, Ok(Some(ticket)) if ticket.status == TicketStatus::Completed && ticket.pdf.as_ref() == Some(pdf))
    }

    /// All attempts are used up: the ticket is failed, with the reason, before its job is.
    pub(super) async fn generate_ticket_failed(
        &self,
        job: &Job,
        reason: &str,
    ) -> Result<(), String> {
        let Ok(GenerateTicket { ticket_id, .. }) = GenerateTicket::parse(&job.data) else {
            // An unreadable payload names no ticket; the reconciler makes a new job for it.
            return Ok(());
        };
        let failure = Failure {
            ticket_id,
            reason: reason.to_owned(),
            worker: self.worker.clone(),
            at: Timestamp::now(),
        };
        let failed =
            self.environment.store.fail_tickets(&[failure]).await.map_err(|e| e.to_string())?;
        if failed.changed.contains(&ticket_id) {
            for batch in failed.batches {
                self.announcer.ticket_failed(&batch, ticket_id, reason, &self.worker).await;
            }
        }
        Ok(())
    }
}

/// Takes a while when the test harness asks for it, so that jobs can be caught in the middle. Not in
/// release builds.
async fn slow_down() {
    if cfg!(debug_assertions)
        && let Some(ms) = std::env::var("STAMPEDE_SLOW_TICKETS").ok().and_then(|ms| ms.parse().ok())
    {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

fn skipped(why: &str) -> Outcome {
    Outcome::Done(json!({ "success": true, "skipped": why }))
}

/// Why a ticket was not printed: an outage costs no attempt, anything else is the template's or the
/// ticket's own.
fn unprinted(error: &stampede_press::Error) -> Outcome {
    match error {
        stampede_press::Error::Store(error) => outage_or_retry(error),
        stampede_press::Error::Unavailable(_) => {
            tracing::warn!(%error, retry_in = ?OUTAGE_PAUSE, "cannot print");
            Outcome::Snooze(OUTAGE_PAUSE)
        }
        _ => Outcome::Retry(error.to_string()),
    }
}

fn outage_or_retry(error: &stampede_store::Error) -> Outcome {
    match error {
        Error::Unavailable(_) => {
            tracing::warn!(%error, retry_in = ?OUTAGE_PAUSE, "the database is away");
            Outcome::Snooze(OUTAGE_PAUSE)
        }
        // Such as the wrong secret for ticket keys: tickets wait for the operator, they do not fail.
        Error::Unusable(_) => {
            tracing::error!(%error, retry_in = ?OUTAGE_PAUSE, "somebody has to act");
            Outcome::Snooze(OUTAGE_PAUSE)
        }
        Error::Corrupt(_) | Error::Refused(_) => Outcome::Retry(error.to_string()),
    }
}

//! `generate-pdf`: makes the PDF of one ticket. Queue, name, priorities and attempts are names and numbers
//! older software relies on (docs/compatibility.md).

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use stampede_broker::{Backoff, JobContext, JobPolicy, JobSpec, Outcome, RetryPolicy, Work};
use stampede_model::{BatchId, Ticket, TicketId, TicketStatus};

use crate::Ticketing;
use crate::generate::{Before, Generated, Made};

/// Priority of VIP tickets: they are made first.
const VIP: u32 = 1;
/// Priority of all others.
const NORMAL: u32 = 10;

/// Make the PDF of one ticket. The job's id is the ticket's, so that no ticket has two jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GenerateTicket {
    /// The ticket.
    pub ticket_id: TicketId,
    /// Its batch, for readers of the queue.
    pub batch_id: BatchId,
}

/// The job's result.
#[derive(Serialize)]
struct TicketMade {
    success: bool,
    pdf_path: String,
    duration_ms: u64,
    steps_us: BTreeMap<&'static str, u64>,
}

impl GenerateTicket {
    /// The job of a ticket.
    pub fn job(ticket: &Ticket) -> JobSpec {
        let payload = Self { ticket_id: ticket.id, batch_id: ticket.batch_id };
        payload.with_priority(ticket.is_vip())
    }

    /// The job, which is made before others if the ticket is a VIP's.
    pub(crate) fn with_priority(self, is_vip: bool) -> JobSpec {
        let id = self.ticket_id.to_string();
        JobSpec { id, priority: if is_vip { VIP } else { NORMAL }, ..self.spec() }
    }
}

impl Work for GenerateTicket {
    const QUEUE: &'static str = "tickets";
    const NAME: &'static str = "generate-pdf";
    const VERSION: u32 = 1;
    type Env = Ticketing;

    fn policy() -> JobPolicy {
        let backoff = Backoff::Exponential(Duration::from_secs(2));
        let retry = RetryPolicy { attempts: 3, backoff, ..RetryPolicy::default() };
        JobPolicy { retry, ..JobPolicy::default() }
    }

    async fn run(&self, ticketing: &Ticketing, context: &JobContext) -> Outcome {
        let before = Before { attempts: context.attempts_made(), crashes: context.crashes() };
        match ticketing.generate(self.ticket_id, before).await {
            Generated::Made(Made { pdf_path, duration, steps_us }) => {
                let duration_ms = duration.as_millis() as u64;
                Outcome::Done(json!(TicketMade { success: true, pdf_path, duration_ms, steps_us }))
            }
            Generated::Skipped(why) => Outcome::Done(json!({ "success": true, "skipped": why })),
            Generated::Later(pause) => Outcome::Snooze(pause),
            Generated::NotMade(reason) => Outcome::Retry(reason),
            Generated::Refused(reason) => Outcome::Discard(reason),
        }
    }

    /// The ticket is failed, with the reason, before its job is.
    async fn given_up(&self, ticketing: &Ticketing, reason: &str) -> Result<(), String> {
        ticketing.give_up(self.ticket_id, reason).await
    }

    /// The reconciler adds a job again as long as its ticket is pending.
    async fn comes_back(ticketing: &Ticketing, job_id: &str) -> Option<String> {
        // A database that is away now is no reason to fail: the job is off the queue already.
        let ticket = ticketing.ticket(job_id.parse().ok()?).await.ok().flatten()?;
        (ticket.status == TicketStatus::Pending).then(|| {
            format!(
                "the ticket is still ordered, so within a minute it gets a new job; to stop it for good, \
                 withdraw the ticket: PATCH /api/tickets/{} {{\"status\": \"void\"}}",
                ticket.id
            )
        })
    }

    fn all_come_back() -> Option<&'static str> {
        Some(
            "tickets that are still ordered get new jobs within a minute; to hold them back, pause the \
             queue; to stop them for good, withdraw them: PATCH /api/tickets/{id} {\"status\": \"void\"}",
        )
    }
}

#[cfg(test)]
mod tests {
    use stampede_broker::PayloadError;
    use stampede_press::sample;

    use super::*;

    #[test]
    fn a_payload_of_a_newer_version_is_refused() {
        let (ticket, batch) = (TicketId::generate(), BatchId::generate());
        let json = |v: u32| json!({ "v": v, "ticketId": ticket, "batchId": batch });
        assert_eq!(GenerateTicket::parse(&json(1)).unwrap().ticket_id, ticket);
        let newer = PayloadError::Version { found: 2, known: 1 };
        assert_eq!(GenerateTicket::parse(&json(2)), Err(newer));
        assert!(GenerateTicket::parse(&json!({ "ticketId": "x" })).is_err());
    }

    #[test]
    fn the_job_of_a_ticket_is_what_older_software_expects() {
        let mut ticket = sample::ticket(&sample::event(), sample::holder(), None);
        let job = GenerateTicket::job(&ticket);
        assert_eq!((GenerateTicket::QUEUE, job.name.as_ref()), ("tickets", "generate-pdf"));
        assert_eq!(job.id, ticket.id.to_string());
        assert_eq!((job.priority, job.attempts), (10, Some(3)));
        assert_eq!(job.backoff, Some(Backoff::Exponential(Duration::from_millis(2_000))));
        let wanted = json!({ "v": 1, "ticketId": ticket.id, "batchId": ticket.batch_id });
        assert_eq!(job.data, wanted);
        ticket.holder.seat = Some("VIP 3".to_owned());
        assert_eq!(GenerateTicket::job(&ticket).priority, 1);
    }
}

//! All job types, by wire name.
//!
//! Adding a job? Its payload goes to `crates/model/src/job.rs`, its work to a file here, and a line
//! into [`Jobs::run`] and, if it keeps records, into [`Jobs::given_up`].

mod generate_ticket;

use stampede_broker::{Handler, Job, JobContext, Outcome};
use stampede_model::GenerateTicket;

use crate::announcer::Announcer;
use crate::completions::Completions;
use crate::environment::Environment;
use crate::loads::Loads;

/// Runs whatever comes from the queue.
pub struct Jobs {
    worker: String,
    environment: Environment,
    loads: Loads,
    completions: Completions,
    announcer: Announcer,
}

impl Jobs {
    pub(crate) fn new(
        worker: String,
        environment: Environment,
        completions: Completions,
        announcer: Announcer,
    ) -> Self {
        let loads = Loads::start(environment.store.clone());
        Self { worker, environment, loads, completions, announcer }
    }
}

impl Handler for Jobs {
    async fn run(&self, job: &Job, _: &JobContext) -> Outcome {
        match job.name.as_str() {
            GenerateTicket::NAME => self.generate_ticket(job).await,
            unknown => Outcome::Discard(format!("no job type is called {unknown:?} here")),
        }
    }

    async fn given_up(&self, job: &Job, reason: &str) -> Result<(), String> {
        match job.name.as_str() {
            GenerateTicket::NAME => self.generate_ticket_failed(job, reason).await,
            _ => Ok(()),
        }
    }
}

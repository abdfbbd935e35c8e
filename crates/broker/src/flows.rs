//! Flows: trees of jobs across queues. A job begins when all its children are done.

use bullmq::{FlowJob, FlowProducer};
use stampede_model::JobSpec;

use crate::names::check_queue_name;
use crate::queue::{check, options_of};
use crate::{Broker, Error};

/// A job and the jobs that have to be done before it.
#[derive(Debug, Clone)]
pub struct Flow {
    /// The job itself.
    pub job: JobSpec,
    /// What comes before it.
    pub children: Vec<Flow>,
}

impl Flow {
    /// A job without children.
    pub fn new(job: JobSpec) -> Self {
        Self { job, children: Vec::new() }
    }

    /// With one more child.
    pub fn after(mut self, child: Flow) -> Self {
        self.children.push(child);
        self
    }
}

impl Broker {
    /// Adds a whole tree of jobs, all or nothing. Adding the same ids again changes nothing. A job that
    /// fails for good fails its parent, too.
    pub async fn add_flow(&self, flow: &Flow) -> Result<(), Error> {
        let producer = FlowProducer::with_connection(self.bull(), Some(self.prefix().to_owned()))?;
        producer.add(flow_job(flow)?).await?;
        Ok(())
    }
}

fn flow_job(flow: &Flow) -> Result<FlowJob, Error> {
    check_queue_name(flow.job.queue)?;
    check(&flow.job)?;
    let job = FlowJob::new(flow.job.name, flow.job.queue, &flow.job.data)?;
    let children: Result<Vec<FlowJob>, Error> = flow.children.iter().map(flow_job).collect();
    // A step that fails for good takes along those that wait for it; else they would wait for ever.
    let options = options_of(&flow.job).fail_parent_on_failure();
    Ok(job.options(options).children(children?))
}

//! Flows: trees of jobs across queues. A job begins when all its children are done.

use bullmq::{FlowJob, FlowProducer};

use crate::queue::names::check_queue_name;
use crate::queue::options::{check, options_of};
use crate::{Broker, Error, JobSpec, Presence};

/// A job and the jobs that have to be done before it.
#[derive(Debug, Clone)]
pub struct Flow {
    /// The queue of the job.
    pub queue: String,
    /// The job itself.
    pub job: JobSpec,
    /// The jobs that must be done before it.
    pub children: Vec<Flow>,
    /// What happens to its parent when it fails permanently.
    pub on_failure: OnFailure,
}

/// What happens to a parent when a child fails permanently.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// The parent fails, too; otherwise it would wait for ever.
    #[default]
    FailParent,
    /// The parent begins when the other children are done, and can read the reason
    /// ([`crate::JobContext::children_failures`]).
    GoOn,
    /// The parent begins at once, whatever the other children do, and knows of it. If they are not done when it
    /// is, it waits for them and runs again; or it removes those that have not begun
    /// ([`crate::JobContext::remove_unprocessed_children`]).
    RunParent,
}

impl Flow {
    /// A job without children.
    pub fn new(queue: impl Into<String>, job: JobSpec) -> Self {
        let on_failure = OnFailure::default();
        Self { queue: queue.into(), job, children: Vec::new(), on_failure }
    }

    /// With one more child.
    pub fn after(mut self, child: Flow) -> Self {
        self.children.push(child);
        self
    }
}

impl Broker {
    /// Adds a whole tree of jobs, all or nothing. If the job at its root is there already, nothing happens.
    pub async fn add_flow(&self, flow: &Flow) -> Result<(), Error> {
        let tree = flow_job(flow, self.max_payload())?;
        // BullMQ would attach existing children to it again, also those that have failed.
        let root = self.queue(&flow.queue).await?;
        if root.presence(&[&flow.job.id]).await? != [Presence::Missing] {
            return Ok(());
        }
        let producer = FlowProducer::with_connection(self.bull(), Some(self.prefix().to_owned()))?;
        producer.add(tree).await?;
        Ok(())
    }
}

fn flow_job(flow: &Flow, max_payload: usize) -> Result<FlowJob, Error> {
    check_queue_name(&flow.queue)?;
    check(&flow.job, max_payload)?;
    let job = FlowJob::new(flow.job.name.as_ref(), flow.queue.as_str(), &flow.job.data)?;
    let children = flow.children.iter().map(|child| flow_job(child, max_payload));
    let children: Result<Vec<FlowJob>, Error> = children.collect();
    let options = options_of(&flow.job);
    let options = match flow.on_failure {
        OnFailure::FailParent => options.fail_parent_on_failure(),
        OnFailure::GoOn => options.ignore_dependency_on_failure(),
        OnFailure::RunParent => options.continue_parent_on_failure(),
    };
    Ok(job.options(options).children(children?))
}

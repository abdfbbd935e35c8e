//! The loops of a node that change the number of its workers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use stampede_broker::Decisions;
use stampede_wire::cluster::{By, Priority, ScalingAction, ScalingDecision, ScalingEvent};
use tokio_util::sync::CancellationToken;

use super::Shared;
use crate::autoscaler::{Plan, Snapshot, decide};
use crate::command::Command;
use crate::machine;
use crate::supervisor::{SupervisorHandle, WorkerState};
use crate::yielding::{ApiSnapshot, ceiling};

/// Commands are carried out this often at most.
const CARRY_OUT_EVERY: Duration = Duration::from_millis(200);
/// The first pause before listening again.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause before listening again.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Refused commands are logged this often at most.
const COMPLAIN_EVERY: Duration = Duration::from_secs(5);
/// Longest wait for Redis: a loop that hangs does not make way for the API.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// The author of a change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Author {
    /// A coordinator, which has written the change into the history already.
    Coordinator,
    /// A command from outside.
    Command,
    /// This node itself.
    Node,
}

/// Listens to commands until `stop`, and adds them up.
pub(super) async fn listen(shared: Arc<Shared>, stop: CancellationToken) {
    let mut pause = FIRST_PAUSE;
    let mut complained: Option<Instant> = None;
    loop {
        let listening = async {
            let channels = Decisions::command_channels(&shared.config.name);
            let mut messages = shared.broker.subscribe(&channels).await?;
            while let Some(text) = messages.next().await {
                pause = FIRST_PAUSE;
                hear(&shared, &text, &mut complained);
            }
            Ok::<(), stampede_broker::Error>(())
        };
        tokio::select! {
            ended = listening => if let Err(error) = ended {
                tracing::debug!(%error, "cannot listen to commands");
            },
            () = stop.cancelled() => return,
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
            () = stop.cancelled() => return,
        }
    }
}

fn hear(shared: &Shared, text: &str, complained: &mut Option<Instant>) {
    let known_token = shared.coordinator().map(|leader| leader.token);
    let refused = match Command::parse(text) {
        // A coordinator that lost its lease may not know it yet.
        Ok(Command { token: Some(token), .. })
            if known_token.is_some_and(|known| token < known) =>
        {
            format!("decided by a former coordinator: {token}")
        }
        Ok(_) if shared.known().ousted => "another process has this node's name".to_owned(),
        Ok(mut command) => {
            command.disown_unless(known_token);
            shared.pending().add(command);
            shared.commanded.notify_one();
            return;
        }
        Err(reason) => reason,
    };
    let refusals = {
        let mut known = shared.known();
        known.refused_commands += 1;
        known.refused_commands
    };
    if complained.is_none_or(|at| at.elapsed() > COMPLAIN_EVERY) {
        *complained = Some(Instant::now());
        tracing::warn!(refused, refusals, "refused a command");
    }
}

/// Carries out what was commanded, until `stop`.
pub(super) async fn carry_out(shared: Arc<Shared>, stop: CancellationToken) {
    let Some(supervisor) = shared.supervisor.clone() else { return };
    loop {
        tokio::select! {
            () = shared.commanded.notified() => {}
            () = stop.cancelled() => return,
        }
        let pending = std::mem::take(&mut *shared.pending());
        if pending.restart {
            tracing::info!(reason = pending.reason, "told to restart all workers");
            supervisor.restart();
            let author = if pending.decided { Author::Coordinator } else { Author::Command };
            let reason = pending.reason.clone().unwrap_or_else(|| "command".to_owned());
            tell(&shared, ScalingAction::Restart, &reason, supervisor.target(), author).await;
        }
        let (now, most) = (supervisor.target(), shared.most());
        let target = pending.target(now, shared.config.min, most);
        if target != now {
            let author = if pending.decided { Author::Coordinator } else { Author::Command };
            let reason = pending.reason.unwrap_or_else(|| match pending.commands {
                1 => "command".to_owned(),
                many => format!("{many} commands"),
            });
            change(&shared, &supervisor, target, &reason, author).await;
        } else if !pending.restart {
            let (min, workers) = (shared.config.min, now);
            tracing::info!(workers, min, max = most, "a command that changes nothing");
        }
        tokio::select! {
            () = tokio::time::sleep(CARRY_OUT_EVERY) => {}
            () = stop.cancelled() => return,
        }
    }
}

/// Decides about the number of workers at every tick, until `stop`.
pub(super) async fn scale(shared: Arc<Shared>, stop: CancellationToken) {
    let Some(supervisor) = shared.supervisor.clone() else { return };
    let mut ticks = tokio::time::interval(shared.config.interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = stop.cancelled() => return,
        }
        shared.measure();
        if shared.config.yields {
            make_way(&shared, &supervisor).await;
        }
        // A node that lost its name does not scale: it only keeps the workers it has.
        if shared.coordinator().is_none() && !shared.known().ousted {
            scale_alone(&shared, &supervisor).await;
        }
    }
}

/// `auto`: moves the ceiling with the latency of the API. Nothing is decided while the workers of other nodes are
/// unknown: without Redis there are no jobs that could slow down the API.
async fn make_way(shared: &Shared, supervisor: &SupervisorHandle) {
    let latency = shared.latency.ninth_of_ten();
    let (now, ceiling) = {
        let mut known = shared.known();
        let Some(others) = known.other_workers() else { return };
        let before = known.ceiling.unwrap_or(shared.config.max);
        let now = ApiSnapshot {
            latency,
            ceiling: before,
            workers: supervisor.target(),
            min: shared.config.min,
            max: shared.config.max,
            others,
            called_back: known.called_back,
            since_change: known.ceiling_changed.map(|at| at.elapsed()),
        };
        let ceiling = ceiling(&now, &shared.config.api);
        known.called_back = now.is_called_back(&shared.config.api);
        if ceiling != before {
            known.ceiling = Some(ceiling);
            known.ceiling_changed = Some(Instant::now());
            shared.news.notify_one();
        }
        (now, ceiling)
    };
    let answered =
        latency.map_or_else(|| "unknown".to_owned(), |l| format!("{} ms", l.as_millis()));
    if now.workers > ceiling {
        let reason = format!("the API needs the machine: 9 of 10 requests within {answered}");
        change(shared, supervisor, ceiling, &reason, Author::Node).await;
    } else if now.is_needed() {
        change(shared, supervisor, 1, "no other node works", Author::Node).await;
    }
}

/// Scales without a coordinator, if Redis answers how full the queues are.
async fn scale_alone(shared: &Shared, supervisor: &SupervisorHandle) {
    let levels = shared.broker.levels(&shared.config.queues);
    let Ok(Ok(levels)) = tokio::time::timeout(ANSWER_WITHIN, levels).await else { return };
    let open = || levels.iter().filter(|level| !level.paused);
    let workers = supervisor.workers();
    let running = || workers.iter().filter(|worker| worker.state == WorkerState::Running);
    let snapshot = {
        let known = shared.known();
        Snapshot {
            waiting: open().map(|level| level.waiting).sum(),
            active: levels.iter().map(|level| level.active).sum(),
            workers: supervisor.target(),
            draining: workers.iter().filter(|w| w.state == WorkerState::Draining).count(),
            busy: running().map(|worker| worker.busy).sum(),
            slots: running().map(|worker| worker.slots).sum(),
            load: machine::load_average().max(known.load),
            cores: shared.cores,
            min: shared.fewest_of(&known),
            max: shared.most_of(&known),
            since_up: known.up.map(|at| at.elapsed()),
            since_down: known.down.map(|at| at.elapsed()),
        }
    };
    match decide(&snapshot, &shared.config.limits) {
        Plan::Stay => {}
        Plan::Up { to, reason } | Plan::Down { to, reason } => {
            change(shared, supervisor, to, &reason, Author::Node).await;
        }
    }
}

/// Changes the number of workers and publishes the change.
async fn change(
    shared: &Shared,
    supervisor: &SupervisorHandle,
    target: usize,
    reason: &str,
    author: Author,
) {
    let before = supervisor.target();
    let is_up = target > before;
    supervisor.scale_to(target);
    {
        let mut known = shared.known();
        let at = if is_up { &mut known.up } else { &mut known.down };
        *at = Some(Instant::now());
    }
    tracing::info!(from = before, to = target, reason, "workers");
    let action = if is_up { ScalingAction::ScaleUp } else { ScalingAction::ScaleDown };
    tell(shared, action, reason, target, author).await;
    shared.news.notify_one();
}

async fn tell(
    shared: &Shared,
    action: ScalingAction,
    reason: &str,
    workers: usize,
    author: Author,
) {
    let (name, workers) = (&shared.config.name, workers as u64);
    let event = ScalingEvent {
        instance_id: Some(name.clone()),
        action: Some(action.clone()),
        reason: Some(reason.to_owned()),
        workers: Some(workers),
        ..ScalingEvent::default()
    };
    let remember = |by: By| ScalingDecision {
        action: Some(action),
        node_id: Some(name.clone()),
        reason: Some(reason.to_owned()),
        priority: Some(Priority::Normal),
        workers: Some(workers),
        by: Some(by),
        ..ScalingDecision::default()
    };
    let entry = match author {
        Author::Coordinator => None,
        Author::Command => Some(remember(By::Command)),
        Author::Node => Some(remember(By::Node)),
    };
    let decisions = shared.broker.decisions();
    let told = tokio::time::timeout(ANSWER_WITHIN, decisions.step(&event, entry.as_ref())).await;
    if let Err(error) = told
        .map_err(|_| "no answer".to_owned())
        .and_then(|told| told.map_err(|error| error.to_string()))
    {
        tracing::debug!(error, "could not publish that the number of workers changed");
    }
}

impl Shared {
    /// Most workers for now.
    fn most(&self) -> usize {
        self.most_of(&self.known())
    }

    fn most_of(&self, known: &super::Known) -> usize {
        known.ceiling.unwrap_or(self.config.max).min(self.config.max)
    }

    /// Fewest workers for now: `auto` keeps one while no other node has workers, or it would be started again at once.
    pub(super) fn fewest_of(&self, known: &super::Known) -> usize {
        let alone = known.called_back || known.other_workers().is_none_or(|others| others == 0);
        let fewest = if self.config.yields && alone { 1 } else { 0 };
        self.config.min.max(fewest.min(self.most_of(known)))
    }

    /// Measures how busy the machine is.
    fn measure(&self) {
        if let Some(busy) = self.processors.busy() {
            self.known().load = busy;
        }
    }
}

//! What follows each answer of Redis when the end of a run is written: a pure function; `finish.rs` does it.
//!
//! An outage is waited out, however long: the work is done, and Redis will answer whether the job is still ours.
//!
//! ```text
//!             ┌───── outage: pause, longer each time ────┐
//!             ▼                                          │
//!          ┌───────┐ ────────────────────────────────────┘
//!          │ write │── finished ──────────────────────────────────▶ done, with or without a next job
//!          └───────┘── finished, and an id that is no job ──▶ remove the id ──▶ done
//!              │  │ ── not ours ──────────────────────────────────▶ not ours
//!              │  │ ── job is gone ──▶ remove its id from active ─▶ not ours
//!              │  │ ── children are not done ─────────────────────▶ later
//!              │  └─── a child has failed ────────────────────────▶ fail it instead
//!              │
//!              ├── not ours, after a lost answer: perhaps our own first call did it ──▶ examine ──▶ done or not ours
//!              └── error: pause ──▶ examine ──▶ done or not ours, and the slot keeps an unfinishable job
//! ```

use std::time::Duration;

use super::{FIRST_PAUSE, LONGEST_PAUSE};
use crate::Job;

/// What a slot has after it finished a job.
#[derive(Debug)]
pub(super) enum NextInSlot {
    /// The next job.
    Job(Box<Job>),
    /// No job.
    None,
    /// Perhaps a job: an answer of Redis was lost.
    Unknown,
    /// Its own job still, which could not be ended.
    Unfinishable,
}

/// Whether the end of a run is the end of its job, and what the slot has then.
#[derive(Debug)]
pub(super) enum FinishEffect {
    /// The job has ended as we wrote it.
    Ours(NextInSlot),
    /// The job waits for children that are not done, and runs again.
    Later,
    /// Another worker has ended the job, or will; or the job is gone.
    NotOurs(NextInSlot),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// The end is being written.
    Writing {
        /// How long to wait after the next outage.
        pause: Duration,
        answer: Answers,
    },
    /// The job has ended; an id that came instead of a next job is being removed.
    Removing,
    /// The job is gone; its id is being removed.
    Forgetting,
    /// It is read whether the job has ended.
    Examining(Reason),
}

/// Whether every call so far was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answers {
    AllCame,
    /// A call was not answered; it may have been executed.
    OneLost,
}

/// Why the job is examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    AnswerLost,
    CannotBeEnded,
}

/// What came of the last effect.
#[derive(Debug)]
pub(super) enum Event {
    /// The end is written, and this job came along.
    NextJob(Box<Job>),
    /// The end is written, and a job came along so late that its lock may have expired.
    LateJob,
    /// The end is written, and no job came along.
    NoJob,
    /// The end is written, and an id came along that no job can have.
    InvalidId(Vec<u8>),
    /// The job cannot be completed: its children are not done.
    ChildrenPending,
    /// The job cannot be completed: a child of it has failed.
    ChildFailed,
    /// There is no such job.
    Missing,
    /// Another worker has ended the job or taken it over.
    NotOurs,
    /// Redis did not answer.
    Outage,
    /// Redis answered with an error.
    Error,
    /// An id was removed.
    Removed,
    /// An id could not be removed.
    NotRemoved,
    /// The examined job has ended as we wrote it, or was removed since.
    EndedByUs,
    /// The examined job has not ended, or another worker has begun it since.
    NotEndedByUs,
}

/// What to do next.
#[derive(Debug)]
pub(super) enum Effect {
    /// Write the end, after a pause.
    Write(Duration),
    /// Remove an id that no job can have.
    RemoveId(Vec<u8>),
    /// Remove the id of a job that is gone.
    ForgetJob,
    /// Read whether the job has ended, after a pause.
    Examine(Duration),
    /// Return.
    Return(FinishEffect),
    /// Return that the job must be failed instead of completed.
    FailInstead,
}

impl State {
    pub(super) const START: Self = Self::Writing { pause: FIRST_PAUSE, answer: Answers::AllCame };
}

pub(super) fn next(state: State, event: Event) -> (State, Effect) {
    use FinishEffect::{Later, NotOurs, Ours};
    let done = |effect| (state, Effect::Return(effect));
    match (state, event) {
        (_, Event::NextJob(job)) => done(Ours(NextInSlot::Job(job))),
        (_, Event::LateJob) => done(Ours(NextInSlot::Unknown)),
        (_, Event::NoJob) => done(Ours(NextInSlot::None)),
        (_, Event::InvalidId(id)) => (State::Removing, Effect::RemoveId(id)),
        // Most likely our first call was executed, and perhaps it took a job for us.
        (State::Writing { answer: Answers::OneLost, .. }, Event::Missing | Event::NotOurs) => {
            (State::Examining(Reason::AnswerLost), Effect::Examine(Duration::ZERO))
        }
        (_, Event::Missing) => (State::Forgetting, Effect::ForgetJob),
        (_, Event::NotOurs) => done(NotOurs(NextInSlot::None)),
        (_, Event::ChildrenPending) => done(Later),
        (_, Event::ChildFailed) => (state, Effect::FailInstead),
        (State::Writing { pause, .. }, Event::Outage) => {
            let longer = (pause * 2).min(LONGEST_PAUSE);
            let after = State::Writing { pause: longer, answer: Answers::OneLost };
            (after, Effect::Write(pause))
        }
        (State::Writing { .. }, Event::Error) => {
            // The next call would meet the same error at once: it must neither spin nor go on for ever.
            (State::Examining(Reason::CannotBeEnded), Effect::Examine(LONGEST_PAUSE))
        }
        // An examination waits for its answer.
        (_, Event::Outage | Event::Error) => (state, Effect::Examine(LONGEST_PAUSE)),
        (State::Forgetting, Event::Removed) => done(NotOurs(NextInSlot::None)),
        (State::Forgetting, Event::NotRemoved) => done(NotOurs(NextInSlot::Unknown)),
        (_, Event::Removed) => done(Ours(NextInSlot::None)),
        (_, Event::NotRemoved) => done(Ours(NextInSlot::Unknown)),
        (State::Examining(Reason::CannotBeEnded), Event::EndedByUs) => {
            done(Ours(NextInSlot::Unfinishable))
        }
        (State::Examining(Reason::CannotBeEnded), Event::NotEndedByUs) => {
            done(NotOurs(NextInSlot::Unfinishable))
        }
        (_, Event::EndedByUs) => done(Ours(NextInSlot::Unknown)),
        (_, Event::NotEndedByUs) => done(NotOurs(NextInSlot::Unknown)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    const LOST: State = State::Writing { pause: FIRST_PAUSE, answer: Answers::OneLost };

    fn job() -> Box<Job> {
        Box::new(Job::from_hash("next".to_owned(), HashMap::new()))
    }

    /// The state and effect after an event, as text.
    fn after(state: State, event: Event) -> (State, String) {
        let (state, effect) = next(state, event);
        let text = match effect {
            Effect::Return(FinishEffect::Ours(NextInSlot::Job(job))) => format!("ours, {}", job.id),
            Effect::Return(FinishEffect::Ours(next)) => format!("ours, {next:?}"),
            Effect::Return(FinishEffect::NotOurs(next)) => format!("not ours, {next:?}"),
            Effect::Return(FinishEffect::Later) => "later".to_owned(),
            effect => format!("{effect:?}"),
        };
        (state, text)
    }

    fn effect(state: State, event: Event) -> String {
        after(state, event).1
    }

    #[test]
    fn an_end_that_is_written_brings_the_next_job_or_none() {
        for state in [State::START, LOST] {
            assert_eq!(effect(state, Event::NextJob(job())), "ours, next");
            assert_eq!(effect(state, Event::LateJob), "ours, Unknown");
            assert_eq!(effect(state, Event::NoJob), "ours, None");
        }
    }

    #[test]
    fn an_id_that_is_no_job_is_removed() {
        let (state, effect_text) = after(State::START, Event::InvalidId(b"meta".to_vec()));
        assert_eq!(state, State::Removing);
        assert!(effect_text.starts_with("RemoveId"), "{effect_text}");
        assert_eq!(effect(state, Event::Removed), "ours, None");
        assert_eq!(effect(state, Event::NotRemoved), "ours, Unknown");
    }

    #[test]
    fn a_job_that_waits_for_children_runs_later_and_one_whose_child_failed_fails() {
        for state in [State::START, LOST] {
            assert_eq!(effect(state, Event::ChildrenPending), "later");
            assert_eq!(effect(state, Event::ChildFailed), "FailInstead");
        }
    }

    #[test]
    fn a_job_of_another_worker_is_not_ours() {
        assert_eq!(effect(State::START, Event::NotOurs), "not ours, None");
    }

    #[test]
    fn the_id_of_a_job_that_is_gone_is_removed() {
        let (state, effect_text) = after(State::START, Event::Missing);
        assert_eq!((state, effect_text.as_str()), (State::Forgetting, "ForgetJob"));
        assert_eq!(effect(state, Event::Removed), "not ours, None");
        assert_eq!(effect(state, Event::NotRemoved), "not ours, Unknown");
    }

    #[test]
    fn an_outage_is_waited_out_with_longer_and_longer_pauses() {
        let (mut state, mut pauses) = (State::START, Vec::new());
        for _ in 0..6 {
            let (after, effect) = next(state, Event::Outage);
            let Effect::Write(pause) = effect else { panic!("{effect:?}") };
            pauses.push(pause.as_millis());
            state = after;
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1000, 1000]);
        let lost = State::Writing { pause: LONGEST_PAUSE, answer: Answers::OneLost };
        assert_eq!(state, lost);
    }

    #[test]
    fn after_a_lost_answer_a_job_that_is_not_ours_is_examined() {
        for event in [Event::NotOurs, Event::Missing] {
            let (state, effect_text) = after(LOST, event);
            assert_eq!(state, State::Examining(Reason::AnswerLost));
            assert_eq!(effect_text, "Examine(0ns)");
            assert_eq!(effect(state, Event::EndedByUs), "ours, Unknown");
            assert_eq!(effect(state, Event::NotEndedByUs), "not ours, Unknown");
        }
    }

    #[test]
    fn after_an_error_the_job_is_examined_and_the_slot_keeps_it() {
        for state in [State::START, LOST] {
            let (state, effect_text) = after(state, Event::Error);
            assert_eq!(state, State::Examining(Reason::CannotBeEnded));
            assert_eq!(effect_text, "Examine(1s)");
            assert_eq!(effect(state, Event::EndedByUs), "ours, Unfinishable");
            assert_eq!(effect(state, Event::NotEndedByUs), "not ours, Unfinishable");
        }
    }

    #[test]
    fn an_examination_is_repeated_until_redis_answers() {
        for reason in [Reason::AnswerLost, Reason::CannotBeEnded] {
            let state = State::Examining(reason);
            assert_eq!(after(state, Event::Outage), (state, "Examine(1s)".to_owned()));
        }
    }
}

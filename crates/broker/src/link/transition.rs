//! What the watcher of Redis concludes from an answer: a pure function from state and event to state and log lines.
//!
//! ```text
//!                  no answer                     ┌──┐ no answer: a reminder once a minute
//!   ┌───────────┐ ──────────▶ ┌──────────────────┴┐ │
//!   │ connected │             │       away        │◀┘
//!   └───────────┘ ◀────────── └───────────────────┘
//!      │     ▲       answer      │            ▲
//!      │     │                   │            │
//!      │     │ answer,           │ answer,    │ no answer
//!      │     │ writes accepted   │ writes     │
//!      │     │                   ▼ refused    │
//!      │  ┌───────────────────────────────────┐
//!      └─▶│ refusing: out of memory or disk   │─┐ still refused: a reminder once a minute
//!  writes └───────────────────────────────────┘◀┘
//!  refused
//! ```
//!
//! Beside this, an answer of another server than before is a restart, and every answer settles the suspicions that
//! were raised before it was asked for.

use std::time::Duration;

use tokio::time::Instant;

/// How often an outage that goes on is logged.
pub(super) const REMIND_EVERY: Duration = Duration::from_secs(60);

/// What the watcher knows, and shares.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// Redis does not answer.
    pub(super) away: Option<Trouble>,
    /// Redis answers and accepts no writes: it is out of memory or disk, or misses its replicas. Its data is not in
    /// doubt, and jobs that end make room.
    pub(super) refusing: Option<Trouble>,
    /// How many suspicions there were when the last answer was asked for; later ones are not settled.
    pub(super) settled: u64,
    /// When another server than before was first seen.
    pub(super) restarted: Option<Instant>,
}

/// Something that is wrong with Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) since: Instant,
    pub(super) reason: String,
}

impl Known {
    /// Whether Redis is away or refuses writes.
    pub(super) fn is_in_trouble(&self) -> bool {
        self.away.is_some() || self.refusing.is_some()
    }
}

/// The state of the watcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    pub(super) known: Known,
    /// The id of the server that answered last.
    server: Option<String>,
    /// When trouble was last logged.
    logged: Instant,
}

impl State {
    pub(super) fn new(now: Instant) -> Self {
        Self { known: Known::default(), server: None, logged: now }
    }
}

/// What came of asking Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// It answered.
    Answered {
        /// The id of the server: every start has its own.
        server: String,
        /// Why it refuses writes, if it does.
        refusal: Option<String>,
        /// How many suspicions there were when it was asked.
        suspicions: u64,
    },
    /// It did not.
    NotAnswered {
        /// What the attempt met.
        reason: String,
    },
}

/// A line to be logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    Restarted,
    Away { reason: String },
    StillAway { reason: String, away: Duration },
    Back { away: Duration },
    RefusesWrites { reason: String },
    AcceptsWrites { refused: Duration },
}

/// The state after an event, and what is to be logged.
pub(super) fn next(mut state: State, event: Event, now: Instant) -> (State, Vec<Effect>) {
    let mut effects = Vec::new();
    match event {
        Event::Answered { server, refusal, suspicions } => {
            if state.server.as_ref().is_some_and(|before| *before != server) {
                effects.push(Effect::Restarted);
                state.known.restarted = Some(now);
            }
            state.server = Some(server);
            state.known.settled = suspicions;
            if let Some(away) = state.known.away.take() {
                effects.push(Effect::Back { away: now.duration_since(away.since) });
            }
            let before = state.known.refusing.take();
            if let Some(reason) = refusal {
                if before.is_none() || is_due(&state, now) {
                    effects.push(Effect::RefusesWrites { reason: reason.clone() });
                    state.logged = now;
                }
                let since = before.map_or(now, |before| before.since);
                state.known.refusing = Some(Trouble { since, reason });
            } else if let Some(before) = before {
                let refused = now.duration_since(before.since);
                effects.push(Effect::AcceptsWrites { refused });
            }
        }
        Event::NotAnswered { reason } => {
            let since = match state.known.away.take() {
                None => {
                    effects.push(Effect::Away { reason: reason.clone() });
                    state.logged = now;
                    now
                }
                Some(away) => {
                    if is_due(&state, now) {
                        let (reason, away) = (reason.clone(), now.duration_since(away.since));
                        effects.push(Effect::StillAway { reason, away });
                        state.logged = now;
                    }
                    away.since
                }
            };
            state.known.away = Some(Trouble { since, reason });
        }
    }
    (state, effects)
}

/// Whether trouble that goes on is to be logged again.
fn is_due(state: &State, now: Instant) -> bool {
    now.duration_since(state.logged) >= REMIND_EVERY
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(server: &str, refusal: Option<&str>, suspicions: u64) -> Event {
        Event::Answered { server: server.into(), refusal: refusal.map(Into::into), suspicions }
    }

    fn silence() -> Event {
        Event::NotAnswered { reason: "refused".into() }
    }

    /// Plays events, each with the seconds after the start; the state at the end and all log lines.
    fn play(events: &[(u64, Event)]) -> (State, Vec<Effect>, Instant) {
        let start = Instant::now();
        let mut state = State::new(start);
        let mut all = Vec::new();
        for (seconds, event) in events {
            let at = start + Duration::from_secs(*seconds);
            let (after, effects) = next(state, event.clone(), at);
            state = after;
            all.extend(effects);
        }
        (state, all, start)
    }

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn answers_of_the_same_server_settle_suspicions_and_say_nothing() {
        let (state, effects, _) = play(&[(0, answer("a", None, 0)), (1, answer("a", None, 7))]);
        assert_eq!((effects, state.known), (vec![], Known { settled: 7, ..Known::default() }));
    }

    #[test]
    fn an_outage_is_logged_when_it_begins_once_a_minute_and_when_it_ends() {
        let mut events = vec![(0, answer("a", None, 1))];
        events.extend((10..=150).map(|second| (second, silence())));
        let (state, effects, start) = play(&events);
        let reason = || "refused".to_owned();
        let still = |away| Effect::StillAway { reason: reason(), away: secs(away) };
        assert_eq!(effects, [Effect::Away { reason: reason() }, still(60), still(120)]);
        let away = state.known.away.clone().unwrap();
        assert_eq!(away.since, start + secs(10), "since its beginning");
        assert!(state.known.is_in_trouble());
        assert_eq!(state.known.settled, 1, "silence settles nothing");
        let (state, effects) = next(state, answer("a", None, 2), start + secs(151));
        assert_eq!(effects, [Effect::Back { away: secs(141) }]);
        assert_eq!(state.known, Known { settled: 2, ..Known::default() });
    }

    #[test]
    fn another_server_is_a_restart_also_after_an_outage() {
        let (state, effects, start) =
            play(&[(0, answer("a", None, 0)), (1, silence()), (2, answer("b", None, 0))]);
        assert_eq!(effects[1..], [Effect::Restarted, Effect::Back { away: secs(1) }]);
        assert_eq!(state.known.restarted, Some(start + secs(2)));
        let (state, effects) = next(state, answer("b", None, 0), start + secs(3));
        assert_eq!(effects, []);
        assert_eq!(state.known.restarted, Some(start + secs(2)), "until the next one");
    }

    #[test]
    fn the_first_answer_is_no_restart() {
        assert_eq!(play(&[(0, silence()), (1, answer("a", None, 0))]).0.known.restarted, None);
    }

    #[test]
    fn refused_writes_are_logged_when_they_begin_once_a_minute_and_when_they_end() {
        let events: Vec<_> = (0..=70).map(|second| (second, answer("a", Some("OOM"), 0))).collect();
        let (state, effects, start) = play(&events);
        let refuses = || Effect::RefusesWrites { reason: "OOM".into() };
        assert_eq!(effects, [refuses(), refuses()]);
        assert_eq!(state.known.refusing.as_ref().unwrap().since, start);
        let (state, effects) = next(state, answer("a", None, 0), start + secs(71));
        assert_eq!(effects, [Effect::AcceptsWrites { refused: secs(71) }]);
        assert!(!state.known.is_in_trouble());
    }

    #[test]
    fn a_server_that_refuses_writes_and_goes_away_comes_back_as_it_answers() {
        let refusing = answer("a", Some("OOM"), 0);
        let (state, _, start) = play(&[(0, refusing.clone()), (1, silence())]);
        assert!(state.known.away.is_some() && state.known.refusing.is_some());
        let (still, effects) = next(state.clone(), refusing, start + secs(2));
        assert_eq!(effects, [Effect::Back { away: secs(1) }]);
        assert_eq!(still.known.refusing.unwrap().since, start, "since its beginning");
        let (well, effects) = next(state, answer("a", None, 0), start + secs(2));
        let accepts = Effect::AcceptsWrites { refused: secs(2) };
        assert_eq!(effects, [Effect::Back { away: secs(1) }, accepts]);
        assert!(!well.known.is_in_trouble());
    }

    #[test]
    fn a_server_that_comes_back_and_refuses_writes_is_refusing_from_then_on() {
        let (state, effects, start) = play(&[(0, silence()), (5, answer("a", Some("OOM"), 0))]);
        let refuses = Effect::RefusesWrites { reason: "OOM".into() };
        assert_eq!(effects[1..], [Effect::Back { away: secs(5) }, refuses]);
        assert_eq!(state.known.refusing.unwrap().since, start + secs(5));
    }
}

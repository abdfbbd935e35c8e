//! Permits of several limits for one operation: all or none.
//!
//! ```text
//!   take_all(a, b, c):   a granted ─▶ b granted ─▶ c waits ─▶ a and b are given back at once ─▶ wait
//!                        a granted ─▶ b granted ─▶ c granted ─▶ stale ones are exchanged ─▶ all, fresh together
//!   refreshed():         stale ones are exchanged ─▶ all fresh ─▶ granted
//!                                                 └▶ stale again and again ─▶ all are given back ─▶ wait
//! ```
//!
//! The limits are asked in the order that the caller gives, so the first that refuses is the one that is told. No script spans
//! several limits: in a Redis Cluster their keys are on different servers. A caller that dies with permits has used them: a limit
//! is never exceeded, at worst it is not reached.

use std::time::Duration;

use futures::future::join_all;

use crate::queue::limits::{Answer, Limits, Permit, Rate, Taken};
use crate::{Error, JobContext};

/// How often stale permits are exchanged; see [`Taken::is_fresh`]. More do not help: then Redis is so far away that every permit
/// arrives stale.
const EXCHANGES: usize = 3;
/// How long an operation waits whose permits were always stale.
const TOO_SLOW: Duration = Duration::from_secs(1);

/// A permit to be asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// The name of the limit.
    pub limit: String,
    /// The rate while the limit is not set.
    pub otherwise: Option<Rate>,
    /// The pause after this grant.
    pub pause: Pause,
    /// The key under which the grant counts. Grants with the same key in one window count once, as the latest of them: a limit
    /// of different recipients, say. `None`: every grant counts.
    pub counts_as: Option<String>,
    /// The caller has a history of its operations. No permit is granted while the log of the limit may lack a part of the window:
    /// the answer is [`Taking::Forgotten`].
    pub has_history: bool,
}

impl Ask {
    /// A permit of a limit, without a pause.
    pub fn new(limit: impl Into<String>) -> Self {
        Self {
            limit: limit.into(),
            otherwise: None,
            pause: Pause::default(),
            counts_as: None,
            has_history: false,
        }
    }

    /// A permit of a limit that has this rate while it is not set.
    pub fn at(limit: impl Into<String>, rate: Rate) -> Self {
        Self { otherwise: Some(rate), ..Self::new(limit) }
    }
}

/// A pause of a limit after a grant: nobody gets the next permit before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pause {
    /// How long.
    pub length: Duration,
    /// A longer pause after so many grants.
    pub rest: Option<Rest>,
}

/// A longer pause after so many grants. A limit that nobody has used for as long counts anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rest {
    /// After how many grants.
    pub every: u32,
    /// How long.
    pub length: Duration,
}

/// The answer to a request for several permits.
#[derive(Debug)]
pub enum Taking {
    /// All are granted, and counted.
    Granted(Permits),
    /// None is granted; to be asked for again after this long.
    Wait {
        /// The limit that has refused.
        limit: String,
        /// How long.
        wait: Duration,
    },
    /// None is granted: the log of a limit may lack a part of the window. To be asked for again after [`Limits::remember`].
    Forgotten {
        /// What was asked for.
        ask: Box<Ask>,
        /// The rate that the limit has now.
        rate: Rate,
    },
}

/// Granted permits; they count unless they are given back.
#[derive(Debug, Default)]
pub struct Permits {
    taken: Vec<Taken>,
}

impl Permits {
    /// Whether an operation that begins now is within all limits.
    pub fn are_fresh(&self) -> bool {
        self.taken.iter().all(Taken::is_fresh)
    }

    /// These permits and others.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.taken.extend(others.taken);
        self
    }

    /// Returns all unused: none counts. Permits that cannot be returned, because Redis is away, count.
    pub async fn give_back(self) -> Result<(), Error> {
        // At once: they go to Redis as one pipeline, or to several servers of a Cluster.
        join_all(self.taken.into_iter().map(Taken::give_back)).await.into_iter().collect()
    }

    /// These permits, all of them fresh: an operation that begins now is within all limits. Stale ones are exchanged. If the new
    /// ones are stale, too, because Redis answers too slowly, all are given back.
    pub async fn refreshed(self) -> Result<Taking, Error> {
        let permits = match self.exchanged().await? {
            Taking::Granted(permits) => permits,
            refused => return Ok(refused),
        };
        let stale = permits.taken.iter().find(|taken| !taken.is_fresh());
        let Some(limit) = stale.map(|taken| taken.ask().limit.clone()) else {
            return Ok(Taking::Granted(permits));
        };
        permits.give_back().await?;
        Ok(Taking::Wait { limit, wait: TOO_SLOW })
    }

    /// Exchanges those that are stale, each for another of the same limit in one step, so that nobody else gets the place. After
    /// some exchanges they stay as they are.
    async fn exchanged(self) -> Result<Taking, Error> {
        let mut permits = self;
        for _ in 0..EXCHANGES {
            if permits.are_fresh() {
                break;
            }
            let (fresh, stale): (Vec<_>, Vec<_>) =
                permits.taken.into_iter().partition(Taken::is_fresh);
            permits = Self { taken: fresh };
            let mut refused = None;
            for (ask, renewed) in join_all(
                stale.into_iter().map(|taken| async { (taken.ask().clone(), taken.renew().await) }),
            )
            .await
            {
                match renewed.map(|answer| granted(answer, &ask)) {
                    Ok(Ok(taken)) => permits.taken.push(taken),
                    Ok(Err(no)) => refused = Some(Ok(no)),
                    Err(error) => refused = Some(Err(error)),
                }
            }
            if let Some(refused) = refused {
                permits.give_back().await?;
                return refused;
            }
        }
        Ok(Taking::Granted(permits))
    }
}

/// The permit, or why there is none.
fn granted(answer: Answer, ask: &Ask) -> Result<Taken, Taking> {
    match answer {
        Answer::Permit(Permit::Granted(taken)) => Ok(*taken),
        Answer::Permit(Permit::Wait(wait)) => Err(Taking::Wait { limit: ask.limit.clone(), wait }),
        Answer::Forgotten(rate) => Err(Taking::Forgotten { ask: Box::new(ask.clone()), rate }),
    }
}

impl Limits {
    /// Asks for permits of several limits in their order, as the caller `who`: all, or none. An operation that must keep to the
    /// limits however slow Redis is asks [`Permits::refreshed`] before it begins.
    pub async fn take_all(&self, who: &str, asks: &[Ask]) -> Result<Taking, Error> {
        let mut permits = Permits::default();
        for ask in asks {
            let answer = self.take_as_asked(who, ask, None).await;
            match answer.map(|answer| granted(answer, ask)) {
                Ok(Ok(taken)) => permits.taken.push(taken),
                Ok(Err(refused)) => {
                    permits.give_back().await?;
                    return Ok(refused);
                }
                Err(error) => {
                    // The first error says what is wrong.
                    let _ = permits.give_back().await;
                    return Err(error);
                }
            }
        }
        permits.exchanged().await
    }
}

impl JobContext {
    /// Asks for permits of several limits in their order: all, or none. Without them: [`crate::Outcome::Snooze`]. A job that asks
    /// again before its time keeps its place.
    pub async fn permits(&self, asks: &[Ask]) -> Result<Taking, Error> {
        self.limits().take_all(self.job_id(), asks).await
    }
}

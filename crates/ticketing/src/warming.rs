//! Warming a template up: one ticket compiles it, or proves it in a process with limits; others of it do not wait long.
//!
//! A template is cold until it is in this process' memory and, if it is an organiser's, has made a ticket. The first
//! ticket that needs it leads. Those that come meanwhile wait in their slots, but never longer than [`FOLLOW`] after
//! the beginning, and then leave their slots: a template that takes ten seconds must not hold the slots of others.
//! They come back soon, whatever their number: stamping them takes microseconds once the template is warm.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::watch;

/// How long after the beginning tickets wait in their slots; most templates are compiled by then.
const FOLLOW: Duration = Duration::from_millis(250);
/// Shortest pause of a ticket that has left its slot.
pub(crate) const SHORTEST: Duration = Duration::from_millis(100);
/// Longest pause of a ticket that has left its slot.
const LONGEST: Duration = Duration::from_secs(1);

/// The templates that are being warmed up, by their key. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Warming {
    templates: Arc<Mutex<HashMap<String, Leader>>>,
}

struct Leader {
    since: Instant,
    ended: watch::Receiver<()>,
}

/// The lead of one ticket; it ends when the value is dropped.
pub(crate) struct Lead {
    warming: Warming,
    key: String,
    /// Followers see that it is gone.
    _ended: watch::Sender<()>,
}

impl Warming {
    /// The lead, if no other ticket has it. `Ok(None)`: another ticket had it, and its lead has ended: look again.
    /// `Err`: another ticket has it, and the caller is to come back after this time.
    pub(crate) async fn lead(&self, key: &str) -> Result<Option<Lead>, Duration> {
        let (since, mut ended) = match self.begin(key) {
            Ok(lead) => return Ok(Some(lead)),
            Err(leader) => leader,
        };
        let patience = FOLLOW.saturating_sub(since.elapsed());
        // Nothing is ever sent: the wait ends when the sender is dropped.
        match tokio::time::timeout(patience, ended.changed()).await {
            Ok(_) => Ok(None),
            Err(_) => Err(since.elapsed().clamp(SHORTEST, LONGEST)),
        }
    }

    fn begin(&self, key: &str) -> Result<Lead, (Instant, watch::Receiver<()>)> {
        let mut templates = self.templates.lock();
        if let Some(leader) = templates.get(key) {
            return Err((leader.since, leader.ended.clone()));
        }
        let (sender, ended) = watch::channel(());
        templates.insert(key.to_owned(), Leader { since: Instant::now(), ended });
        Ok(Lead { warming: self.clone(), key: key.to_owned(), _ended: sender })
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.warming.templates.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_ticket_leads_and_others_follow_for_a_moment() {
        let warming = Warming::default();
        let lead = warming.lead("a").await.ok().flatten().unwrap();
        assert!(matches!(warming.lead("b").await, Ok(Some(_))), "another template is no concern");
        let (mut followers, start) = (Vec::new(), Instant::now());
        for _ in 0..100 {
            let warming = warming.clone();
            followers.push(tokio::spawn(async move { warming.lead("a").await.err() }));
        }
        for follower in followers {
            let pause = follower.await.unwrap().expect("it must not wait for the leader");
            assert!((SHORTEST..=LONGEST).contains(&pause), "{pause:?}");
        }
        assert!(start.elapsed() < Duration::from_secs(5), "all wait at the same time");
        // Whoever comes later does not wait at all.
        let pause = warming.lead("a").await.err().unwrap();
        assert!(pause <= LONGEST, "{pause:?}");
        drop(lead);
        assert!(matches!(warming.lead("a").await, Ok(Some(_))));
        assert!(warming.templates.lock().is_empty(), "templates that are warm are forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn a_follower_goes_on_as_soon_as_the_leader_has_ended() {
        let warming = Warming::default();
        let lead = warming.lead("a").await.ok().flatten();
        let follower = tokio::spawn({
            let warming = warming.clone();
            async move { warming.lead("a").await }
        });
        tokio::task::yield_now().await;
        drop(lead);
        assert!(matches!(follower.await.unwrap(), Ok(None)));
    }
}

//! Templates under suspicion: their tickets are made in processes that may die, or not at all.
//!
//! A ticket whose job lost its worker puts its template under suspicion, in Redis (`stampede_broker::Suspects`). Every
//! worker looks there once a second while it makes tickets of organisers. Tickets of a suspect are made apart
//! (`Press::pdf_apart`); a process that dies of one is a strike, and after three in a row the template is set aside. A
//! new revision is another template: it begins without suspicion. So does the same template of another organiser: what
//! the tickets of one organiser say must not stop those of another.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stampede_broker::{Broker, Suspect};
use stampede_model::{Event, KeyHash};

use crate::{Error, Ticketing};

/// Strikes in a row after which a template is set aside.
const SET_ASIDE_AFTER: u32 = 3;
/// How old the view of Redis may be.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Patience for Redis; an older view does, too.
const PATIENCE: Duration = Duration::from_millis(500);

/// Longest owner that is part of a suspect's name as it is, in bytes.
const LONGEST_OWNER: usize = 80;

/// The verdict on a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing against it.
    Free,
    /// It may bring down the process that works with it.
    Suspected,
    /// No ticket is made with it, for this reason.
    SetAside(String),
}

/// The suspects, as this process saw them last.
pub(crate) struct Suspects {
    redis: stampede_broker::Suspects,
    view: Mutex<View>,
}

#[derive(Default)]
struct View {
    by_name: HashMap<String, Suspect>,
    looked: Option<Instant>,
}

impl Suspects {
    pub(crate) fn new(broker: &Broker) -> Self {
        Self { redis: broker.suspects(), view: Mutex::default() }
    }

    /// The verdict on this template.
    pub(crate) async fn verdict(&self, name: &str) -> Verdict {
        self.look().await;
        match self.view.lock().by_name.get(name) {
            None => Verdict::Free,
            Some(suspect) => judged(suspect),
        }
    }

    /// Notes that a job with this template lost its worker.
    pub(crate) async fn suspect(&self, name: &str) {
        let reason = "a worker died while it made a ticket with it";
        let known = self.view.lock().by_name.contains_key(name);
        if known {
            return;
        }
        tracing::warn!(suspect = name, "{reason}: its tickets are made apart");
        let suspect = Suspect {
            name: name.to_owned(),
            strikes: 0,
            reason: reason.to_owned(),
            expires_in: Duration::ZERO,
        };
        self.view.lock().by_name.insert(name.to_owned(), suspect);
        if let Err(error) = self.redis.suspect(name, reason).await {
            tracing::debug!(%error, "other workers do not know of a suspect");
        }
    }

    /// Counts a process that died of a ticket with this template.
    pub(crate) async fn strike(&self, name: &str, reason: &str) {
        match self.redis.strike(name, reason).await {
            Ok(strikes) if strikes >= SET_ASIDE_AFTER => {
                tracing::error!(suspect = name, strikes, reason, "a template is set aside");
            }
            Ok(strikes) => {
                tracing::warn!(suspect = name, strikes, reason, "a ticket ended its process");
            }
            Err(error) => tracing::warn!(%error, "a template's strike was not counted"),
        }
        // The next ticket has to see it.
        self.view.lock().looked = None;
    }

    /// Notes that a ticket was made with this template.
    pub(crate) async fn worked(&self, name: &str) {
        let had_strikes = {
            let mut view = self.view.lock();
            let suspect = view.by_name.get_mut(name);
            suspect.is_some_and(|suspect| std::mem::take(&mut suspect.strikes) > 0)
        };
        if had_strikes && let Err(error) = self.redis.absolve(name).await {
            tracing::debug!(%error, "a template keeps its strikes");
        }
    }

    /// Reads the suspects from Redis, unless that was done lately. Callers that come meanwhile use the older view.
    async fn look(&self) {
        {
            let mut view = self.view.lock();
            if view.looked.is_some_and(|looked| looked.elapsed() < LOOK_AGAIN) {
                return;
            }
            view.looked = Some(Instant::now());
        }
        match tokio::time::timeout(PATIENCE, self.redis.all()).await {
            Ok(Ok(all)) => {
                let by_name = all.into_iter().map(|suspect| (suspect.name.clone(), suspect));
                self.view.lock().by_name = by_name.collect();
            }
            Ok(Err(error)) => tracing::debug!(%error, "cannot look for suspects"),
            Err(_) => tracing::debug!("Redis does not answer: cannot look for suspects"),
        }
    }
}

impl Ticketing {
    /// Refuses an organiser's template that is set aside, with the reason.
    pub(crate) async fn must_not_be_set_aside(&self, event: &Event) -> Result<(), Error> {
        let found = self.shared.press.find(event).await?;
        if !found.is_organisers() {
            return Ok(());
        }
        let name = name(&event.owner, found.revision());
        match self.shared.suspects.verdict(&name).await {
            Verdict::SetAside(reason) => Err(Error::Unprintable(reason)),
            Verdict::Free | Verdict::Suspected => Ok(()),
        }
    }
}

fn judged(suspect: &Suspect) -> Verdict {
    let Suspect { name, strikes, reason, .. } = suspect;
    if *strikes < SET_ASIDE_AFTER {
        return Verdict::Suspected;
    }
    Verdict::SetAside(format!(
        "its template is set aside, because {strikes} tickets in a row ended the process that made them; the \
         last one so: {reason}. Publish a corrected revision of the template, or ask an operator to lift \
         this: DELETE /api/suspects/{name}"
    ))
}

/// The name of an organiser's template among suspects. An owner that does not fit into a name or an address is hashed.
pub(crate) fn name(owner: &str, revision: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if !owner.is_empty() && owner.len() <= LONGEST_OWNER && owner.chars().all(is_plain) {
        return format!("template:{owner}:{revision}");
    }
    let hash = KeyHash::of(owner);
    format!("template:~{}:{revision}", &hash.as_str()[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_strikes_in_a_row_set_a_template_aside_with_the_reason() {
        let suspect = |strikes| Suspect {
            name: name("ann", "ab"),
            strikes,
            reason: "out of memory".to_owned(),
            expires_in: Duration::ZERO,
        };
        for strikes in 0..3 {
            assert_eq!(judged(&suspect(strikes)), Verdict::Suspected);
        }
        let Verdict::SetAside(reason) = judged(&suspect(3)) else { panic!("not set aside") };
        assert!(
            reason.contains("out of memory") && reason.contains("/api/suspects/template:ann:ab")
        );
    }

    #[test]
    fn templates_with_the_same_files_are_told_apart_by_their_owners() {
        assert_ne!(name("ann", "ab"), name("bob", "ab"));
        let odd = ["Ann Bo", "Ann/Bo", "", "ä", &"x".repeat(200)].map(|owner| name(owner, "ab"));
        for (at, name) in odd.iter().enumerate() {
            assert!(name.starts_with("template:~") && name.len() < 100, "{name}");
            assert!(!odd[at + 1..].contains(name));
        }
    }
}

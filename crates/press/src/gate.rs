//! Turns at the compiler, given fairly: an owner with many requests waits for its own, not the others for them.
//!
//! A number of requests run at the same time, and of one owner only so many. Owners that wait stand in a line: the
//! first whose share is not used up has the next turn, and goes to the end of the line if more of its requests wait.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// How many requests run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Of all owners together.
    pub places: usize,
    /// Of one owner.
    pub per_owner: usize,
}

impl Default for Share {
    /// The sandbox runs two children at a time. An owner may have both, while nobody else waits.
    fn default() -> Self {
        Self { places: 2, per_owner: 2 }
    }
}

/// Gives out turns.
pub(crate) struct Gate {
    share: Share,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: usize,
    owners: HashMap<Arc<str>, Owner>,
    /// Owners that wait, the next one first.
    line: VecDeque<Arc<str>>,
}

#[derive(Default)]
struct Owner {
    running: usize,
    waiting: VecDeque<oneshot::Sender<Turn>>,
}

/// A turn, which ends when the value is dropped.
pub(crate) struct Turn {
    gate: Arc<Gate>,
    owner: Arc<str>,
}

impl Gate {
    pub(crate) fn new(share: Share) -> Arc<Self> {
        Arc::new(Self { share, state: Mutex::default() })
    }

    /// Waits for a turn of this owner.
    pub(crate) async fn turn(self: &Arc<Self>, owner: &Arc<str>) -> Turn {
        let (place, turn) = oneshot::channel();
        {
            let mut state = self.state.lock();
            let own = state.owners.entry(owner.clone()).or_default();
            own.waiting.push_back(place);
            if own.waiting.len() == 1 {
                state.line.push_back(owner.clone());
            }
        }
        self.fill();
        match turn.await {
            Ok(turn) => turn,
            // The gate holds the other end until it has sent a turn.
            Err(_) => Turn { gate: self.clone(), owner: owner.clone() },
        }
    }

    /// Gives out turns as long as there are places. Turns are sent outside the lock: one that nobody takes any more
    /// is dropped, and comes back here.
    fn fill(self: &Arc<Self>) {
        loop {
            let next = self.state.lock().next(self.share);
            let Some((owner, place)) = next else { return };
            drop(place.send(Turn { gate: self.clone(), owner }));
        }
    }
}

impl State {
    fn next(&mut self, share: Share) -> Option<(Arc<str>, oneshot::Sender<Turn>)> {
        if self.running >= share.places.max(1) {
            return None;
        }
        let has_room = |owners: &HashMap<Arc<str>, Owner>, owner: &Arc<str>| {
            owners.get(owner).is_some_and(|own| own.running < share.per_owner.max(1))
        };
        loop {
            let at = self.line.iter().position(|owner| has_room(&self.owners, owner))?;
            let owner = self.line.remove(at)?;
            let Some(own) = self.owners.get_mut(&owner) else { continue };
            own.waiting.retain(|place| !place.is_closed());
            let Some(place) = own.waiting.pop_front() else {
                self.forget(&owner);
                continue;
            };
            own.running += 1;
            self.running += 1;
            if !own.waiting.is_empty() {
                self.line.push_back(owner.clone());
            }
            return Some((owner, place));
        }
    }

    /// Forgets an owner without requests.
    fn forget(&mut self, owner: &Arc<str>) {
        if self.owners.get(owner).is_some_and(|own| own.running == 0 && own.waiting.is_empty()) {
            self.owners.remove(owner);
        }
    }

    fn ended(&mut self, owner: &Arc<str>) {
        self.running = self.running.saturating_sub(1);
        let Some(own) = self.owners.get_mut(owner) else { return };
        own.running = own.running.saturating_sub(1);
        self.forget(owner);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.gate.state.lock().ended(&self.owner);
        self.gate.fill();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::BoxFuture;

    use super::*;

    fn owner(name: &str) -> Arc<str> {
        name.into()
    }

    fn waiting<'a>(gate: &'a Arc<Gate>, owner: &'a Arc<str>) -> BoxFuture<'a, Turn> {
        let mut turn = gate.turn(owner).boxed();
        assert!((&mut turn).now_or_never().is_none(), "{owner} need not wait");
        turn
    }

    #[tokio::test]
    async fn an_owner_with_many_requests_lets_others_pass() {
        let (ann, bob) = (owner("ann"), owner("bob"));
        let gate = Gate::new(Share { places: 1, per_owner: 1 });
        let first = gate.turn(&ann).await;
        let more: Vec<_> = (0..5).map(|_| waiting(&gate, &ann)).collect();
        let mut other = waiting(&gate, &bob);
        drop(first);
        let mut more = more.into_iter();
        let second = more.next().unwrap().now_or_never().expect("Ann was first in the line");
        assert!((&mut other).now_or_never().is_none());
        drop(second);
        assert!(other.now_or_never().is_some(), "Bob comes before the rest of Ann's");
        assert!(more.next().unwrap().now_or_never().is_some());
    }

    #[tokio::test]
    async fn one_owner_cannot_have_all_places_unless_it_may() {
        let (ann, bob) = (owner("ann"), owner("bob"));
        let gate = Gate::new(Share { places: 2, per_owner: 1 });
        let _first = gate.turn(&ann).await;
        let _waiting = waiting(&gate, &ann);
        assert!(gate.turn(&bob).now_or_never().is_some());
        let gate = Gate::new(Share { places: 2, per_owner: 2 });
        let _both = (gate.turn(&ann).await, gate.turn(&ann).await);
        let _waiting = waiting(&gate, &bob);
    }

    #[tokio::test]
    async fn requests_that_are_given_up_take_no_turn() {
        let (ann, bob) = (owner("ann"), owner("bob"));
        let gate = Gate::new(Share { places: 1, per_owner: 1 });
        let first = gate.turn(&ann).await;
        drop(waiting(&gate, &ann));
        let kept = waiting(&gate, &bob);
        drop(first);
        let kept = kept.now_or_never().expect("the one before is gone");
        drop(kept);
        assert!(gate.turn(&ann).now_or_never().is_some());
        assert!(gate.state.lock().owners.is_empty(), "owners without requests are forgotten");
    }
}

//! One turn at a time for each user. A user whose templates run into their limits waits for those, and other
//! users do not.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex as Lock;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Users that are remembered; beyond that, users without a turn are forgotten.
const REMEMBERED: usize = 1_000;

/// Gives out turns. Clones share them.
#[derive(Clone, Default)]
pub struct Turns {
    users: Arc<Lock<HashMap<String, Weak<Mutex<()>>>>>,
}

impl Turns {
    /// Waits for the user's turn, which ends when the value is dropped.
    pub(crate) async fn take(&self, user: &str) -> OwnedMutexGuard<()> {
        let turn = self.of(user);
        turn.lock_owned().await
    }

    fn of(&self, user: &str) -> Arc<Mutex<()>> {
        let mut users = self.users.lock();
        if let Some(turn) = users.get(user).and_then(Weak::upgrade) {
            return turn;
        }
        if users.len() >= REMEMBERED {
            users.retain(|_, turn| turn.strong_count() > 0);
        }
        let turn = Arc::default();
        users.insert(user.to_owned(), Arc::downgrade(&turn));
        turn
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn users_wait_for_themselves_and_not_for_others() {
        let turns = Turns::default();
        let first = turns.take("ann").await;
        assert!(turns.take("ann").now_or_never().is_none());
        assert!(turns.take("bob").now_or_never().is_some());
        drop(first);
        assert!(turns.take("ann").now_or_never().is_some());
    }

    #[tokio::test]
    async fn users_without_a_turn_are_forgotten() {
        let turns = Turns::default();
        let kept = turns.take("ann").await;
        for n in 0..REMEMBERED + 10 {
            drop(turns.take(&n.to_string()).await);
        }
        assert!(turns.users.lock().len() < REMEMBERED);
        assert!(turns.take("ann").now_or_never().is_none(), "a turn that is taken stays taken");
        drop(kept);
    }
}

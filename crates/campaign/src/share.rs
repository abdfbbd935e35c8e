//! The message slots of a worker process, shared among the accounts that have messages now.
//!
//! ```text
//!   one account at work            it may have all slots
//!   several                        each may have its share, slots ÷ accounts; beyond that only while slots stay free for the others
//! ```
//!
//! Jobs of all accounts wait in one queue, the oldest first. Without shares, a campaign whose provider answers slowly occupies all
//! slots, and every other campaign waits until its hundreds of jobs are done. A job beyond the share goes back to the queue for a
//! random time, so that the jobs behind it are reached.
//!
//! The accounts at work are read at most once a second, whatever the number of messages. A job that goes back costs no query.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stampede_model::CampaignId;
use stampede_model::campaign::AccountId;
use stampede_store::{AccountAtWork, Store};

use crate::Campaigns;

/// The accounts at work are read again after this time.
const OLDEST: Duration = Duration::from_secs(1);
/// One of so many slots stays free for accounts that have less than their share.
const FREE_OF: usize = 8;
/// The pause of a job that goes back, before the jitter. It grows with the queue of its account, so that jobs that cannot run yet do
/// not keep the process busy.
const SHORTEST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(10);
/// Jobs come back so many times faster than they are done: an account never waits for its own jobs.
const AHEAD: f64 = 4.0;
/// How much one message changes the mean time of the messages of its account.
const WEIGHT: f64 = 0.1;

/// The message slots of this process.
pub(crate) struct Shares {
    store: Store,
    /// How many slots there are; 0: nobody has said, and nothing is shared.
    slots: AtomicUsize,
    state: Arc<Mutex<State>>,
    /// Held by the one who reads the accounts at work.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    read: Option<Instant>,
    at_work: HashMap<AccountId, AccountAtWork>,
    /// Messages in slots of this process, and the mean time that one takes.
    taken: HashMap<AccountId, Taken>,
}

#[derive(Default, Clone, Copy)]
struct Taken {
    slots: usize,
    seconds: f64,
}

/// Whether a job may run now.
pub(crate) enum Place {
    /// It may, as long as it keeps this.
    Taken(Option<SlotTaken>),
    /// It goes back for so long.
    Later(Duration),
}

/// A slot that an account has. It is free again when this is dropped.
pub(crate) struct SlotTaken {
    state: Arc<Mutex<State>>,
    account: AccountId,
    since: Instant,
}

impl Campaigns {
    /// Tells how many messages this process sends at the same time: they are shared among the accounts that have messages.
    pub fn set_message_slots(&self, slots: usize) {
        self.shared.shares.slots.store(slots, Ordering::Relaxed);
    }

    /// Takes a slot for a message of a campaign, or says how long its job goes back.
    pub(crate) async fn place_for(&self, campaign: CampaignId) -> Place {
        let shares = &self.shared.shares;
        let slots = shares.slots.load(Ordering::Relaxed);
        if slots == 0 {
            return Place::Taken(None);
        }
        // What is wrong with it is found by the run.
        let Ok(Some(snapshot)) = self.shared.snapshots.running(campaign).await else {
            return Place::Taken(None);
        };
        shares.read_if_old().await;
        shares.place(&snapshot.account.id, slots, rand::random())
    }
}

impl Shares {
    pub(crate) fn new(store: Store) -> Self {
        let (slots, reading) = (AtomicUsize::new(0), tokio::sync::Mutex::default());
        Self { store, slots, state: Arc::default(), reading }
    }

    /// Reads which accounts are at work, if nobody has for a second. Only the first read is waited for.
    async fn read_if_old(&self) {
        let read = self.state.lock().read;
        if read.is_some_and(|read| read.elapsed() < OLDEST) {
            return;
        }
        let _reading = match read {
            Some(_) => match self.reading.try_lock() {
                Ok(reading) => reading,
                Err(_) => return,
            },
            None => self.reading.lock().await,
        };
        if self.state.lock().read.is_some_and(|read| read.elapsed() < OLDEST) {
            return;
        }
        let found = self.store.accounts_at_work().await;
        let mut state = self.state.lock();
        // If the database is away, nobody asks again for a second.
        state.read = Some(Instant::now());
        match found {
            Ok(found) => {
                state.at_work = found.into_iter().map(|it| (it.account.clone(), it)).collect();
                let State { at_work, taken, .. } = &mut *state;
                taken.retain(|account, taken| taken.slots > 0 || at_work.contains_key(account));
            }
            Err(error) => {
                tracing::debug!(%error, "cannot read which accounts have messages; their slots are shared as before");
            }
        }
    }

    fn place(&self, account: &AccountId, slots: usize, random: f64) -> Place {
        let mut state = self.state.lock();
        if !state.may_take(account, slots) {
            return Place::Later(state.pause(account, random));
        }
        state.taken.entry(account.clone()).or_default().slots += 1;
        drop(state);
        let (state, account) = (self.state.clone(), account.clone());
        Place::Taken(Some(SlotTaken { state, account, since: Instant::now() }))
    }
}

impl State {
    /// Whether an account may take another slot.
    fn may_take(&self, account: &AccountId, slots: usize) -> bool {
        let others = self.at_work.keys().filter(|other| *other != account).count();
        if others == 0 {
            return true;
        }
        let has = self.taken.get(account).map_or(0, |taken| taken.slots);
        let all: usize = self.taken.values().map(|taken| taken.slots).sum();
        let free = slots.saturating_sub(all);
        has < slots.div_ceil(others + 1) || free > slots.div_ceil(FREE_OF)
    }

    /// How long a job of an account goes back: until its turn comes, with some to spare. `random` is from 0 until before 1.
    fn pause(&self, account: &AccountId, random: f64) -> Duration {
        let (queued, sending) =
            self.at_work.get(account).map_or((0, 0), |work| (work.queued, work.sending));
        let seconds = self.taken.get(account).map_or(0.0, |taken| taken.seconds);
        let turn = queued as f64 * seconds / (AHEAD * sending.max(1) as f64);
        let pause = turn.clamp(SHORTEST.as_secs_f64(), LONGEST.as_secs_f64());
        Duration::from_secs_f64(pause * (0.5 + random))
    }
}

impl SlotTaken {
    /// Counts the time of a message that was sent, or tried: a job that only found out that it has to wait says nothing.
    pub(crate) fn count_time(&self) {
        let took = self.since.elapsed().as_secs_f64();
        if let Some(taken) = self.state.lock().taken.get_mut(&self.account) {
            let before = if taken.seconds > 0.0 { taken.seconds } else { took };
            taken.seconds = before + WEIGHT * (took - before);
        }
    }
}

impl Drop for SlotTaken {
    fn drop(&mut self) {
        if let Some(taken) = self.state.lock().taken.get_mut(&self.account) {
            taken.slots = taken.slots.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> AccountId {
        name.parse().unwrap()
    }

    /// Accounts at work, each with the slots that it has.
    fn state(accounts: &[(&str, usize)]) -> State {
        let mut state = State::default();
        for (name, slots) in accounts {
            let work = AccountAtWork { account: id(name), queued: 900, sending: *slots as u64 };
            state.at_work.insert(id(name), work);
            state.taken.insert(id(name), Taken { slots: *slots, seconds: 4.0 });
        }
        state
    }

    #[test]
    fn one_account_alone_may_have_all_slots() {
        assert!(state(&[("slow", 15)]).may_take(&id("slow"), 16));
        let mut others_are_done = state(&[("slow", 15)]);
        others_are_done.taken.insert(id("done"), Taken::default());
        assert!(others_are_done.may_take(&id("slow"), 16));
    }

    #[test]
    fn an_account_with_more_than_its_share_leaves_slots_free_for_the_others() {
        for (slow, other, may_slow, may_other) in [
            (7, 0, true, true),
            // More than a share, while slots are free.
            (13, 0, true, true),
            (14, 0, false, true),
            (16, 0, false, true),
            (8, 7, false, true),
            (7, 8, true, false),
            (13, 1, false, true),
        ] {
            let state = state(&[("slow", slow), ("other", other)]);
            let may = |name: &str| state.may_take(&id(name), 16);
            assert_eq!((may("slow"), may("other")), (may_slow, may_other), "{slow} {other}");
        }
        let crowd = state(&[("a", 1), ("b", 1), ("c", 0)]);
        assert!(crowd.may_take(&id("c"), 2), "everybody may have one");
        assert!(!crowd.may_take(&id("a"), 2));
        assert!(state(&[("a", 0), ("b", 0)]).may_take(&id("a"), 1));
    }

    #[test]
    fn an_account_that_has_just_begun_counts_before_it_is_read() {
        let state = state(&[("slow", 14)]);
        assert!(state.may_take(&id("new"), 16));
    }

    #[test]
    fn jobs_go_back_for_a_part_of_the_time_until_their_turn() {
        let pause = |queued, sending, seconds, random| {
            let mut state = State::default();
            let account = id("slow");
            state.at_work.insert(
                account.clone(),
                AccountAtWork { account: account.clone(), queued, sending },
            );
            state.taken.insert(account.clone(), Taken { slots: 1, seconds });
            state.pause(&account, random).as_millis()
        };
        assert_eq!(pause(900, 16, 4.0, 0.5), 10_000, "their turn is in four minutes");
        assert_eq!(pause(80, 16, 4.0, 0.5), 5_000);
        assert_eq!(pause(900, 16, 0.005, 0.5), 500);
        assert_eq!(pause(0, 0, 4.0, 0.0), 250);
        assert_eq!(pause(0, 0, 4.0, 0.999_999), 749);
    }
}

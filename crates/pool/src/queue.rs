//! Which waiting task is next.
//!
//! Each priority has a line of its own. A task rises by one priority for every step of time that it has waited. Of tasks with
//! the same risen priority, the first that was submitted is next. Within a line the first task has waited longest, so only the
//! first task of each line can be next.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How urgent a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Priority {
    /// Before all others.
    Vip,
    /// As usual.
    #[default]
    Normal,
    /// When nothing else waits.
    Batch,
}

impl Priority {
    /// All priorities, the most urgent first.
    pub const ALL: [Self; 3] = [Self::Vip, Self::Normal, Self::Batch];
    /// The words for them, in that order.
    pub const WORDS: [&'static str; 3] = ["vip", "normal", "batch"];

    /// The word for this priority.
    pub fn as_str(self) -> &'static str {
        Self::WORDS[self as usize]
    }

    /// The priority that a word stands for.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|priority| priority.as_str() == word)
    }
}

/// Where a waiting task is found again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    priority: Priority,
    number: u64,
}

/// A task that waits.
#[derive(Debug)]
pub(crate) struct Waiting<T> {
    number: u64,
    /// When it was submitted.
    pub(crate) since: Instant,
    /// The task.
    pub(crate) task: T,
}

/// Tasks that wait.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// A task that has waited so long rises by one priority; zero: tasks do not rise.
    step: Duration,
    lines: [VecDeque<Waiting<T>>; 3],
    next_number: u64,
}

impl<T> Queue<T> {
    pub(crate) fn new(step: Duration) -> Self {
        Self { step, lines: [const { VecDeque::new() }; 3], next_number: 0 }
    }

    /// How many tasks wait.
    pub(crate) fn len(&self) -> usize {
        self.lines.iter().map(VecDeque::len).sum()
    }

    /// Adds a task to the end of its line.
    pub(crate) fn push(&mut self, priority: Priority, task: T, now: Instant) -> Place {
        let number = self.next_number;
        self.next_number += 1;
        self.lines[priority as usize].push_back(Waiting { number, since: now, task });
        Place { priority, number }
    }

    /// Takes the task that is next.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Waiting<T>> {
        let first = |(rank, line): (usize, &VecDeque<Waiting<T>>)| {
            let waiting = line.front()?;
            let risen = rank.saturating_sub(self.steps(now.duration_since(waiting.since)));
            Some((risen, waiting.number, rank))
        };
        let (.., rank) = self.lines.iter().enumerate().filter_map(first).min()?;
        self.lines[rank].pop_front()
    }

    /// Takes a task out; `None` if it does not wait any more.
    pub(crate) fn remove(&mut self, place: Place) -> Option<T> {
        let line = &mut self.lines[place.priority as usize];
        let at = line.binary_search_by_key(&place.number, |waiting| waiting.number).ok()?;
        line.remove(at).map(|waiting| waiting.task)
    }

    /// Takes all tasks out.
    pub(crate) fn drain(&mut self) -> Vec<T> {
        let all = self.lines.iter_mut().flat_map(|line| line.drain(..));
        all.map(|waiting| waiting.task).collect()
    }

    fn steps(&self, waited: Duration) -> usize {
        let steps = waited.as_nanos().checked_div(self.step.as_nanos()).unwrap_or(0);
        usize::try_from(steps).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::Priority::{Batch, Normal, Vip};
    use super::*;

    const STEP: Duration = Duration::from_secs(2);

    /// Tasks in the order in which they are taken at a time.
    fn taken(queue: &mut Queue<&'static str>, now: Instant) -> Vec<&'static str> {
        std::iter::from_fn(|| queue.pop(now).map(|waiting| waiting.task)).collect()
    }

    #[test]
    fn urgent_tasks_come_first_and_each_line_is_served_in_order() {
        let (mut queue, now) = (Queue::new(STEP), Instant::now());
        for (priority, task) in
            [(Batch, "b1"), (Normal, "n1"), (Vip, "v1"), (Batch, "b2"), (Vip, "v2"), (Normal, "n2")]
        {
            queue.push(priority, task, now);
        }
        assert_eq!(queue.len(), 6);
        assert_eq!(taken(&mut queue, now), ["v1", "v2", "n1", "n2", "b1", "b2"]);
    }

    #[test]
    fn a_task_rises_one_step_for_every_two_seconds() {
        let start = Instant::now();
        let order = |waited: Duration| {
            let mut queue = Queue::new(STEP);
            queue.push(Batch, "old batch", start);
            for (priority, task) in [(Vip, "vip"), (Normal, "normal"), (Batch, "batch")] {
                queue.push(priority, task, start + waited);
            }
            taken(&mut queue, start + waited)
        };
        let just_before = STEP - Duration::from_nanos(1);
        assert_eq!(order(just_before), ["vip", "normal", "old batch", "batch"]);
        assert_eq!(order(STEP), ["vip", "old batch", "normal", "batch"]);
        assert_eq!(order(STEP + just_before), ["vip", "old batch", "normal", "batch"]);
        assert_eq!(order(2 * STEP), ["old batch", "vip", "normal", "batch"]);
        assert_eq!(order(1_000 * STEP), ["old batch", "vip", "normal", "batch"]);
    }

    #[test]
    fn tasks_do_not_rise_if_the_step_is_zero() {
        let (mut queue, start) = (Queue::new(Duration::ZERO), Instant::now());
        queue.push(Batch, "old", start);
        let later = start + Duration::from_secs(3_600);
        queue.push(Normal, "new", later);
        assert_eq!(taken(&mut queue, later), ["new", "old"]);
    }

    #[test]
    fn a_task_is_removed_once_from_anywhere() {
        let (mut queue, now) = (Queue::new(STEP), Instant::now());
        let places = ["a", "b", "c"].map(|task| queue.push(Normal, task, now));
        queue.push(Vip, "v", now);
        assert_eq!(queue.remove(places[1]), Some("b"));
        assert_eq!(queue.remove(places[1]), None);
        assert_eq!(taken(&mut queue, now), ["v", "a", "c"]);
        assert_eq!(queue.remove(places[0]), None, "it was taken");
    }

    #[test]
    fn words_stand_for_priorities() {
        for priority in Priority::ALL {
            assert_eq!(Priority::from_word(priority.as_str()), Some(priority));
        }
        assert_eq!(Priority::from_word("VIP"), None);
        assert_eq!(Priority::default().as_str(), "normal");
    }
}

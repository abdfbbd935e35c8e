//! Waiting for the disk: the write of an event loop, and how long a thread has waited.
//!
//! A disk may never answer. The thread that waits then holds the lock of the output, so no other thread may wait for that
//! lock without a limit, but the writer's.

use std::{sync::atomic::Ordering, time::Duration};

use super::{AT_REST, Shared};

/// How long an event loop waits for the output: another loop's write takes microseconds. Past it, the replies are
/// held and the loop goes on.
const OUTPUT_PATIENCE: Duration = Duration::from_millis(1);

impl Shared {
    /// How long the disk has worked on something that replies wait for; `None` while it does not.
    pub(in crate::journal) fn disk_busy_for(&self) -> Option<Duration> {
        let since = self.disk_since.load(Ordering::Relaxed);
        (since != AT_REST).then(|| {
            let since = self.epoch + Duration::from_millis(since);
            since.elapsed()
        })
    }

    /// Notes that replies wait for the disk from now on, until [`Self::disk_ends`]. Only the holder of the output's
    /// lock calls these two, or the writer's thread while nobody else writes.
    pub(in crate::journal) fn disk_begins(&self) {
        // Never `AT_REST`: one millisecond more or less does not matter.
        let now = self.epoch.elapsed().as_millis() as u64;
        self.disk_since.store(now.max(1), Ordering::Relaxed);
    }

    pub(in crate::journal) fn disk_ends(&self) {
        self.disk_since.store(AT_REST, Ordering::Relaxed);
    }

    /// Hands all appended records to the kernel, on this thread. If the output is taken or has earlier work, the
    /// writer's thread does it, and [`Event::Written`](crate::journal::Event::Written) tells.
    pub(in crate::journal) fn write_out(&self) {
        let wanted = self.appended();
        if self.written() >= wanted {
            return;
        }
        // A disk that does not answer is not waited for in every round.
        let is_slow = self.disk_busy_for().is_some_and(|spent| spent > 2 * OUTPUT_PATIENCE);
        let patience = if is_slow { Duration::ZERO } else { OUTPUT_PATIENCE };
        let Some(mut output) = self.output.try_lock_for(patience) else {
            return self.call_writer();
        };
        if self.written() >= wanted {
            // Another loop has written them meanwhile.
            return;
        }
        self.disk_begins();
        let done = output.write_for_loop(self);
        self.disk_ends();
        drop(output);
        self.set_written(done.written);
        if let Some(state) = done.state {
            self.set_state(state);
        }
        if done.calls_writer {
            self.call_writer();
        }
    }

    /// Leaves the records to the writer's thread.
    pub(in crate::journal) fn call_writer(&self) {
        self.lock().called = true;
        self.wake.notify_one();
    }
}

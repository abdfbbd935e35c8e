//! Handling messages from other threads: new connections, pub/sub messages, replies to blocked
//! clients; and connections that waited for the journal.

use super::loop_state::SlotState;
use super::{EventLoop, MAX_MESSAGE_BYTES, State};
use crate::server::connection::RunState;
use crate::server::loop_queue::{LoopMessage, SendKind};

impl EventLoop {
    pub(super) fn take_messages(&self, state: &mut State<'_>) {
        for message in self.loop_queue.take() {
            self.deliver(state, message);
        }
    }

    /// Makes connections that waited for the journal ready, so that they are tried again.
    pub(super) fn take_awaiting(&mut self, state: &mut State<'_>) {
        self.checked_safe = self.shared.safe();
        for index in self.loop_queue.take_awaiting() {
            match state.slots.get_mut(index) {
                Some(SlotState::Idle(connection)) => {
                    connection.ready.writable = true;
                    state.ready.push_back(index);
                }
                Some(SlotState::InUse(ready)) => ready.writable = true,
                _ => {}
            }
        }
    }

    fn deliver(&self, state: &mut State<'_>, message: LoopMessage) {
        let to = match &message {
            LoopMessage::Connected(_) => None,
            LoopMessage::Send { to, .. } | LoopMessage::Close { to } => Some(*to),
        };
        let slot = to.and_then(|to| state.slots.get_mut(to.index));
        match (message, slot) {
            (LoopMessage::Connected(stream), _) => self.add_connection(state, stream),
            (
                LoopMessage::Send { to, bytes, depends_on, kind },
                Some(SlotState::Idle(connection)),
            ) if connection.client == to.client => {
                let too_much = connection.pending() + bytes.len() > MAX_MESSAGE_BYTES;
                if kind == SendKind::PubSub && too_much {
                    tracing::warn!(
                        client = to.client,
                        pending = connection.pending(),
                        "a subscriber that does not read its messages was disconnected"
                    );
                    connection.ready.read_closed = true;
                    connection.input.clear();
                    connection.run_state = RunState::Blocked;
                } else {
                    if !self.shared.may_send(depends_on) {
                        connection.hold(depends_on, bytes);
                    } else if connection.send(&bytes).is_err() {
                        connection.ready.read_closed = true;
                    }
                    if kind == SendKind::Unblock {
                        connection.run_state = RunState::Running;
                    }
                    connection.ready.writable = true;
                }
                state.ready.push_back(to.index);
            }
            (LoopMessage::Close { to }, Some(SlotState::Idle(connection)))
                if connection.client == to.client =>
            {
                // Like a closed socket of a blocked client: closes at once and ignores further
                // input.
                connection.run_state = RunState::Blocked;
                connection.ready.read_closed = true;
                state.ready.push_back(to.index);
            }
            // The loop's own thread serves it and handles its messages afterwards.
            (message, Some(SlotState::InUse(_))) => self.loop_queue.push(message, Some(self.index)),
            // The client has disconnected.
            _ => {}
        }
    }
}

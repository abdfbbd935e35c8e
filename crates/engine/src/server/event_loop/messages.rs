//! Handling messages from other threads: new connections, pub/sub messages, replies to blocked
//! clients.

use super::loop_state::SlotState;
use super::{EventLoop, MAX_MESSAGE_BYTES, State};
use crate::journal::Position;
use crate::server::connection::RunState;
use crate::server::loop_queue::{LoopMessage, SendKind};
use crate::server::shared::DependsOn;

impl EventLoop {
    pub(super) fn take_messages(&self, state: &mut State<'_>) {
        for message in self.loop_queue.take() {
            self.deliver(state, message);
        }
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
                LoopMessage::Send { to, bytes, position, kind },
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
                    // A reply to a blocked client depends on its own write; a pub/sub message on
                    // what it reports.
                    let written = if kind == SendKind::Unblock { position } else { Position(0) };
                    let depends_on = DependsOn { written, seen: position };
                    if self.shared.must_hold(depends_on) {
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

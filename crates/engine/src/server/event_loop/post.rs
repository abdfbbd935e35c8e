//! Handling messages from other threads: new connections, pub/sub messages, replies to blocked
//! clients.

use super::places::Place;
use super::{EventLoop, MAX_MESSAGE_BYTES, State};
use crate::journal::Position;
use crate::server::connection::Pace;
use crate::server::mail::{Mail, Then};
use crate::server::shared::Tells;

impl EventLoop {
    pub(super) fn read_mail(&self, state: &mut State<'_>) {
        for mail in self.mailbox.take() {
            self.deliver(state, mail);
        }
        for index in self.mailbox.take_awaiting() {
            match state.places.get_mut(index) {
                Some(Place::Here(connection)) => {
                    connection.ready.writable = true;
                    state.ready.push_back(index);
                }
                Some(Place::Away(ready)) => ready.writable = true,
                _ => {}
            }
        }
    }

    fn deliver(&self, state: &mut State<'_>, mail: Mail) {
        let to = match &mail {
            Mail::Connected(_) => None,
            Mail::Bytes { to, .. } | Mail::Close { to } => Some(*to),
        };
        let place = to.and_then(|to| state.places.get_mut(to.index));
        match (mail, place) {
            (Mail::Connected(stream), _) => self.welcome(state, stream),
            (Mail::Bytes { to, bytes, position, then }, Some(Place::Here(connection)))
                if connection.client == to.client =>
            {
                let too_much = connection.pending() + bytes.len() > MAX_MESSAGE_BYTES;
                if then == Then::GoOn && too_much {
                    tracing::warn!(
                        client = to.client,
                        pending = connection.pending(),
                        "a subscriber that does not read its messages was disconnected"
                    );
                    connection.ready.read_closed = true;
                    connection.input.clear();
                    connection.pace = Pace::Waiting;
                } else {
                    // A reply to a blocked client depends on its own write; a pub/sub message on
                    // what it reports.
                    let written = if then == Then::Resume { position } else { Position(0) };
                    let tells = Tells { written, seen: position };
                    if self.shared.must_hold(tells) {
                        connection.hold(tells, bytes);
                    } else if connection.send(&bytes).is_err() {
                        connection.ready.read_closed = true;
                    }
                    if then == Then::Resume {
                        connection.pace = Pace::Running;
                    }
                    connection.ready.writable = true;
                }
                state.ready.push_back(to.index);
            }
            (Mail::Close { to }, Some(Place::Here(connection)))
                if connection.client == to.client =>
            {
                // Like a closed socket of a blocked client: closes at once and ignores further
                // input.
                connection.pace = Pace::Waiting;
                connection.ready.read_closed = true;
                state.ready.push_back(to.index);
            }
            // The loop's own thread serves it and handles its messages afterwards.
            (mail, Some(Place::Away(_))) => self.mailbox.post(mail, Some(self.index)),
            // The client has disconnected.
            _ => {}
        }
    }
}

//! Opening connections, giving each to a loop, and closing them.

use std::io;
use std::sync::atomic::Ordering;

use mio::Interest;

use super::loop_state::{SlotState, token};
use super::{Driver, EventLoop, State};
use crate::server::connection::{Connection, Stream};
use crate::server::executor::Executor;
use crate::server::loop_queue::{ClientId, LoopMessage, Slot};
use crate::server::request::AuthState;

impl EventLoop {
    pub(super) fn accept(&self, state: &mut State<'_>) {
        state.accept_pending = false;
        loop {
            let mut refused = None;
            let accepted: Vec<Stream> = state
                .listeners
                .iter()
                .flat_map(|listener| {
                    std::iter::from_fn(|| {
                        loop {
                            match listener.accept() {
                                Ok(stream) => return Some(stream),
                                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                                    return None;
                                }
                                // The client has already disconnected; try the next one.
                                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                                Err(error) => {
                                    refused = Some(error);
                                    return None;
                                }
                            }
                        }
                    })
                    .take(128)
                    .collect::<Vec<_>>()
                })
                .collect();
            if let Some(error) = refused {
                state.accept_pending = true;
                tracing::warn!(%error, "a connection could not be accepted");
            }
            if accepted.is_empty() {
                return;
            }
            for stream in accepted {
                let owner = self.shared.next_loop();
                // The watchdog keeps the connection: the chosen loop may be the stuck one.
                if owner == self.index || self.driver == Driver::Watchdog {
                    self.add_connection(state, stream);
                } else {
                    self.shared.loops[owner]
                        .loop_queue
                        .push(LoopMessage::Connected(stream), Some(self.index));
                }
            }
        }
    }

    pub(super) fn add_connection(&self, state: &mut State<'_>, mut stream: Stream) {
        let clients = self.shared.counters.clients.fetch_add(1, Ordering::Relaxed);
        if clients >= self.shared.counters.max_clients.load(Ordering::Relaxed) {
            self.shared.counters.clients.fetch_sub(1, Ordering::Relaxed);
            self.shared.counters.rejected.fetch_add(1, Ordering::Relaxed);
            // A partial write is fine: a rejected client is not waited for.
            let _ = stream.write(b"-ERR max number of clients reached\r\n");
            return;
        }
        let index = state.allocate_slot();
        if let Err(error) =
            self.registry.register(stream.source(), token(index), Interest::READABLE)
        {
            tracing::warn!(%error, "a connection could not be registered");
            self.shared.counters.clients.fetch_sub(1, Ordering::Relaxed);
            return state.release(index);
        }
        let auth_state = if self.shared.password.is_some() {
            AuthState::Unauthenticated
        } else {
            AuthState::Authenticated
        };
        let mut connection =
            Box::new(Connection::new(stream, self.shared.next_client(), auth_state));
        // If the executor is locked, the session is created by the first command: this must not
        // block.
        if let Some(mut executor) = self.shared.executor.try_lock() {
            self.create_session(&mut connection, index, &mut executor);
        }
        state.slots[index] = SlotState::Idle(connection);
    }

    pub(super) fn create_session(
        &self,
        connection: &mut Connection,
        index: usize,
        executor: &mut Executor,
    ) {
        let slot = Slot { index, client: connection.client };
        let addresses = connection.stream.addresses();
        executor.connect(&self.loop_queue, slot, addresses, connection.auth_state);
        connection.has_session = true;
    }

    /// Closes a connection and ends its session.
    pub(super) fn close_connection(&self, mut connection: Connection) {
        self.shared.counters.clients.fetch_sub(1, Ordering::Relaxed);
        let _ = self.registry.deregister(connection.stream.source());
        self.end_session(connection.client);
    }

    /// Ends a client's session: its blocked command, watches and subscriptions.
    pub(super) fn end_session(&self, client: ClientId) {
        match self.executor() {
            Some(mut executor) => executor.disconnect(client),
            None => self.shared.counters.note_disconnected(client),
        }
    }
}

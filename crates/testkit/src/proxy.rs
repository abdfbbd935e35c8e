//! A way to a server that breaks when it is told to: resets, lost answers, a change of servers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Forwards connections to a port of this machine.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    target: AtomicU16,
    /// The next answer is swallowed.
    swallow: AtomicBool,
    /// What breaks each connection, by number.
    open: Mutex<HashMap<u64, Arc<Notify>>>,
}

impl Proxy {
    /// Starts to forward to a port of this machine.
    pub async fn start(target: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await;
        let listener = listener.unwrap_or_else(|error| panic!("cannot listen: {error}"));
        let port = listener.local_addr().map(|address| address.port()).unwrap_or_default();
        let shared = Arc::new(Shared { target: target.into(), ..Shared::default() });
        let accepting = tokio::spawn(accept(listener, shared.clone()));
        Self { port, shared, accepting }
    }

    /// The address for clients of a Redis behind it.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// From now on, new connections lead to another server.
    pub fn lead_to(&self, target: u16) {
        self.shared.target.store(target, Ordering::SeqCst);
    }

    /// Resets those connections whose number `chosen` says yes to, as a firewall would: both ends see
    /// an error, and what was on its way is lost. Returns how many.
    pub fn reset(&self, chosen: impl Fn(u64) -> bool) -> usize {
        let open = self.shared.open();
        let broken: Vec<_> = open.iter().filter(|(number, _)| chosen(**number)).collect();
        broken.iter().for_each(|(_, connection)| connection.notify_one());
        broken.len()
    }

    /// The next answer is thrown away and its connection reset: the server did what it was asked to,
    /// and the client never hears of it.
    pub fn swallow_next_answer(&self) {
        self.shared.swallow.store(true, Ordering::SeqCst);
    }

    /// Whether that has happened.
    pub fn has_swallowed(&self) -> bool {
        !self.shared.swallow.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.reset(|_| true);
    }
}

impl Shared {
    fn open(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Arc<Notify>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut number = 0;
    while let Ok((client, _)) = listener.accept().await {
        let target = shared.target.load(Ordering::SeqCst);
        let Ok(server) = TcpStream::connect(("127.0.0.1", target)).await else { continue };
        number += 1;
        let broken = Arc::new(Notify::new());
        shared.open().insert(number, broken.clone());
        let shared = shared.clone();
        tokio::spawn(async move {
            forward(client, server, &broken, &shared.swallow).await;
            shared.open().remove(&number);
        });
    }
}

async fn forward(client: TcpStream, server: TcpStream, broken: &Notify, swallow: &AtomicBool) {
    for stream in [&client, &server] {
        stream.set_nodelay(true).ok();
        // Closed with a reset, whatever is still on its way.
        stream.set_zero_linger().ok();
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let never = AtomicBool::new(false);
    tokio::select! {
        () = broken.notified() => {}
        () = pass_on(from_client, to_server, &never) => {}
        () = pass_on(from_server, to_client, swallow) => {}
    }
}

async fn pass_on(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, swallow: &AtomicBool) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if swallow.swap(false, Ordering::SeqCst) || to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}

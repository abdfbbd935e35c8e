//! A way to a server that breaks when it is told to: resets, lost answers, silence, a change of servers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
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
    /// How many milliseconds later answers arrive.
    delay_ms: AtomicU64,
    /// What breaks each connection, by number.
    open: Mutex<HashMap<u64, Arc<Notify>>>,
    silence: watch::Sender<Silence>,
}

/// Who says nothing.
#[derive(Debug, Clone, Copy, Default)]
struct Silence {
    all: bool,
    /// Connections up to this number.
    up_to: u64,
}

impl Silence {
    fn of(self, number: u64) -> bool {
        self.all || number <= self.up_to
    }
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

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address of the server behind it, with the proxy in its place.
    pub fn instead_of(&self, url: &str) -> String {
        let target = self.shared.target.load(Ordering::SeqCst);
        url.replace(&format!(":{target}"), &format!(":{}", self.port))
    }

    /// Nothing goes through any more, in no direction, and nobody is told: what a pulled cable does.
    /// Connections stay open, new ones hang. What was sent arrives when the silence ends.
    pub fn silence(&self) {
        self.shared.silence.send_modify(|silence| silence.all = true);
    }

    /// Nothing goes through those connections that are open now, and nobody is told: what a balancer does
    /// that has lost its memory. New ones work.
    pub fn strand(&self) {
        let last = self.shared.open().keys().copied().max().unwrap_or(0);
        self.shared.silence.send_modify(|silence| silence.up_to = last);
    }

    /// Everything goes through again.
    pub fn mend(&self) {
        self.shared.silence.send_replace(Silence::default());
    }

    /// From now on, answers arrive so much later: what a server does that is far away.
    pub fn delay(&self, length: Duration) {
        self.shared.delay_ms.store(length.as_millis() as u64, Ordering::SeqCst);
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
        number += 1;
        let broken = Arc::new(Notify::new());
        shared.open().insert(number, broken.clone());
        let shared = shared.clone();
        tokio::spawn(async move {
            let connecting = async {
                spoken(&mut shared.silence.subscribe(), number).await;
                TcpStream::connect(("127.0.0.1", target)).await
            };
            let server = tokio::select! {
                server = connecting => server.ok(),
                () = broken.notified() => None,
            };
            if let Some(server) = server {
                forward(client, server, number, &broken, &shared).await;
            }
            shared.open().remove(&number);
        });
    }
}

/// Returns when a connection is not silent.
async fn spoken(silence: &mut watch::Receiver<Silence>, number: u64) {
    // The proxy is there as long as its connections are.
    let _ = silence.wait_for(|silence| !silence.of(number)).await;
}

async fn forward(
    client: TcpStream,
    server: TcpStream,
    number: u64,
    broken: &Notify,
    shared: &Shared,
) {
    for stream in [&client, &server] {
        stream.set_nodelay(true).ok();
        // Closed with a reset, whatever is still on its way.
        stream.set_zero_linger().ok();
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let (never, at_once) = (AtomicBool::new(false), AtomicU64::new(0));
    let silence = || (shared.silence.subscribe(), number);
    tokio::select! {
        () = broken.notified() => {}
        () = pass_on(from_client, to_server, (&never, &at_once), silence()) => {}
        () = pass_on(from_server, to_client, (&shared.swallow, &shared.delay_ms), silence()) => {}
    }
}

async fn pass_on(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    (swallow, delay_ms): (&AtomicBool, &AtomicU64),
    (mut silence, number): (watch::Receiver<Silence>, u64),
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        spoken(&mut silence, number).await;
        let delay = Duration::from_millis(delay_ms.load(Ordering::SeqCst));
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        if swallow.swap(false, Ordering::SeqCst) || to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
    // A connection that ends is noticed no sooner than what it said.
    spoken(&mut silence, number).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn echo() -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = stream.split();
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                });
            }
        });
        port
    }

    #[tokio::test]
    async fn silence_holds_back_and_a_reset_closes() {
        let proxy = Proxy::start(echo().await).await;
        let mut stream = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
        let mut answer = [0; 2];
        stream.write_all(b"a1").await.unwrap();
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"a1");

        proxy.silence();
        stream.write_all(b"b2").await.unwrap();
        let short = Duration::from_millis(100);
        assert!(tokio::time::timeout(short, stream.read_exact(&mut answer)).await.is_err());
        let mut late = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
        late.write_all(b"c3").await.unwrap();
        assert!(tokio::time::timeout(short, late.read_exact(&mut answer)).await.is_err());
        proxy.mend();
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"b2", "what was sent arrives later");
        late.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"c3");

        let (delay, begun) = (Duration::from_millis(80), std::time::Instant::now());
        proxy.delay(delay);
        late.write_all(b"c4").await.unwrap();
        late.read_exact(&mut answer).await.unwrap();
        assert!(&answer == b"c4" && begun.elapsed() >= delay);
        proxy.delay(Duration::ZERO);

        proxy.strand();
        stream.write_all(b"d4").await.unwrap();
        assert!(tokio::time::timeout(short, stream.read_exact(&mut answer)).await.is_err());
        let mut new = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
        new.write_all(b"e5").await.unwrap();
        new.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"e5", "others are not concerned");

        assert_eq!(proxy.reset(|_| true), 3);
        assert_eq!(stream.read(&mut answer).await.unwrap_or(0), 0, "closed");
    }
}

//! A network that misbehaves: a TCP proxy in front of a real server.
//!
//! - *silent*: nothing goes through, in no direction, and nobody is told: what a firewall or a pulled
//!   cable does. Connections stay open, new ones are accepted and hang. What was sent arrives when the
//!   silence ends.
//! - *cut*: connections are closed, new ones are closed at once.
//! - *slow*: every piece waits a while.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What the network is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weather {
    Fine { delay: Duration },
    Silent,
    Cut,
}

/// A proxy in front of a server on this machine.
#[derive(Debug)]
pub struct ChaosProxy {
    port: u16,
    weather: watch::Sender<Weather>,
    accepting: JoinHandle<()>,
}

impl ChaosProxy {
    /// Listens on a free loopback port and forwards to another one.
    pub async fn start(target: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .unwrap_or_else(|error| panic!("no free loopback port: {error}"));
        let port = listener.local_addr().map(|address| address.port()).unwrap_or_default();
        let (weather, seen) = watch::channel(Weather::Fine { delay: Duration::ZERO });
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(connection(client, target, seen.clone()));
            }
        });
        Self { port, weather, accepting }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The same address with this proxy's port instead of the server's.
    pub fn instead_of(&self, url: &str, server_port: u16) -> String {
        url.replace(&format!(":{server_port}"), &format!(":{}", self.port))
    }

    /// Nothing goes through any more, and nobody is told.
    pub fn silence(&self) {
        self.weather.send_replace(Weather::Silent);
    }

    /// All connections are closed, new ones at once.
    pub fn cut(&self) {
        self.weather.send_replace(Weather::Cut);
    }

    /// Every piece waits this long.
    pub fn delay(&self, delay: Duration) {
        self.weather.send_replace(Weather::Fine { delay });
    }

    /// Everything goes through again.
    pub fn mend(&self) {
        self.delay(Duration::ZERO);
    }
}

impl Drop for ChaosProxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

async fn connection(client: TcpStream, target: u16, mut weather: watch::Receiver<Weather>) {
    let mut cut = weather.clone();
    let forwarding = async {
        fine(&mut weather).await;
        let Ok(server) = TcpStream::connect(("127.0.0.1", target)).await else { return };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        tokio::join!(
            pump(from_client, to_server, weather.clone()),
            pump(from_server, to_client, weather.clone()),
        );
    };
    tokio::select! {
        () = forwarding => {}
        _ = cut.wait_for(|weather| *weather == Weather::Cut) => {}
    }
}

/// Waits until something may go through; returns how long it takes.
async fn fine(weather: &mut watch::Receiver<Weather>) -> Duration {
    let fine = |weather: &Weather| matches!(weather, Weather::Fine { .. });
    let seen = weather.wait_for(fine).await.map(|weather| *weather);
    match seen {
        Ok(Weather::Fine { delay }) => delay,
        // The proxy is gone, and the connection with it.
        _ => std::future::pending().await,
    }
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut weather: watch::Receiver<Weather>,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let delay = fine(&mut weather).await;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
    // The end of what one side has to say goes through as well.
    let _ = to.shutdown().await;
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
    async fn silence_holds_back_and_cutting_closes() {
        let proxy = ChaosProxy::start(echo().await).await;
        let mut stream = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
        let mut answer = [0; 2];
        stream.write_all(b"a1").await.unwrap();
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"a1");

        proxy.silence();
        stream.write_all(b"b2").await.unwrap();
        let short = Duration::from_millis(100);
        assert!(tokio::time::timeout(short, stream.read_exact(&mut answer)).await.is_err());
        proxy.mend();
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"b2", "what was sent arrives later");

        proxy.cut();
        assert_eq!(stream.read(&mut answer).await.unwrap_or(0), 0, "closed");
        let mut late = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
        assert_eq!(late.read(&mut answer).await.unwrap_or(0), 0, "closed at once");
    }
}

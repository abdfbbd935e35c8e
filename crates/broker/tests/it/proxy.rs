//! A connection to Redis that breaks at the worst moment: after Redis did it, before it could say so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};

/// Forwards to a Redis.
pub(crate) struct Proxy {
    port: u16,
    swallow: Arc<AtomicBool>,
}

impl Proxy {
    pub(crate) async fn start(redis_port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let swallow = Arc::new(AtomicBool::new(false));
        let swallowing = swallow.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if let Ok(server) = TcpStream::connect(("127.0.0.1", redis_port)).await {
                    tokio::spawn(forward(client, server, swallowing.clone()));
                }
            }
        });
        Self { port, swallow }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The next answer is thrown away and its connection closed.
    pub(crate) fn swallow_next_answer(&self) {
        self.swallow.store(true, Ordering::SeqCst);
    }

    pub(crate) fn has_swallowed(&self) -> bool {
        !self.swallow.load(Ordering::SeqCst)
    }
}

async fn forward(client: TcpStream, server: TcpStream, swallow: Arc<AtomicBool>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let answers = async move {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = from_server.read(&mut buffer).await {
            if swallow.swap(false, Ordering::SeqCst) {
                return;
            }
            if to_client.write_all(&buffer[..length]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = answers => {}
        _ = copy(&mut from_client, &mut to_server) => {}
    }
}

//! A proxy that can freeze, as a network does that breaks without an error.

use std::future::pending;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Passes connections on to a port of this machine.
pub(crate) struct Proxy {
    port: u16,
    frozen: watch::Sender<()>,
}

impl Proxy {
    pub(crate) async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (frozen, _) = watch::channel(());
        let proxy = Self { port: listener.local_addr().unwrap().port(), frozen: frozen.clone() };
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut frozen = frozen.subscribe();
                tokio::spawn(async move {
                    let mut server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut client, &mut server) => return,
                        _ = frozen.changed() => {}
                    }
                    // Both ends stay open, and neither hears of the other again.
                    drop(frozen);
                    pending::<()>().await;
                });
            }
        });
        proxy
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Freezes all connections there are, and returns when nothing passes any more; new ones work.
    pub(crate) async fn freeze(&self) {
        self.frozen.send(()).unwrap();
        // Each connection holds a receiver until it is frozen.
        self.frozen.closed().await;
    }
}

//! Identity providers of our own: each serves one JWKS.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use stampede_testkit::{TempDir, eventually, free_port, temp_dir};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A provider without TLS that counts its requests.
pub(super) struct Provider {
    port: u16,
    published: Arc<Mutex<String>>,
    asked: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Provider {
    pub(super) async fn start(jwks: String) -> Self {
        Self::start_at(0, jwks).await
    }

    pub(super) async fn start_at(port: u16, jwks: String) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (published, asked) = (Arc::new(Mutex::new(jwks)), Arc::new(AtomicUsize::new(0)));
        let (body, count) = (published.clone(), asked.clone());
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                let body = body.lock().unwrap().clone();
                answer(stream, &body).await;
            }
        });
        Self { port, published, asked, task }
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/jwks.json", self.port)
    }

    /// Replaces the keys.
    pub(super) fn publish(&self, jwks: String) {
        *self.published.lock().unwrap() = jwks;
    }

    /// How often it was asked.
    pub(super) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Answers nobody any more.
    pub(super) fn stop(&mut self) {
        self.task.abort();
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(mut stream: TcpStream, body: &str) {
    let mut request = [0; 4096];
    let _ = stream.read(&mut request).await;
    let _ = stream.write_all(whole(body).as_bytes()).await;
    let _ = stream.shutdown().await;
}

/// An answer with its head.
fn whole(body: &str) -> String {
    let (kind, length) = ("Content-Type: application/json", body.len());
    format!(
        "HTTP/1.1 200 OK\r\n{kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// A provider with TLS: `openssl s_server`, with a certificate of an authority of its own.
pub(super) struct TlsProvider {
    server: Child,
    port: u16,
    folder: TempDir,
}

impl TlsProvider {
    pub(super) async fn start(jwks: &str) -> Self {
        let (folder, port) = (temp_dir(), free_port());
        // `s_server -HTTP` sends the file as it is: the head must be in it.
        std::fs::write(folder.path().join("jwks.json"), whole(jwks)).unwrap();
        std::fs::write(folder.path().join("names"), "subjectAltName=IP:127.0.0.1\n").unwrap();
        let run = |options: &str| {
            let made = Command::new("openssl")
                .args(options.split_whitespace())
                .current_dir(&folder)
                .output()
                .expect("openssl: apt-get install openssl");
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        };
        let new = "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        run(&format!("{new} -x509 -days 2 -subj /CN=authority -keyout ca.key -out ca.pem"));
        run(&format!("{new} -subj /CN=provider -keyout server.key -out server.csr"));
        run("x509 -req -days 2 -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial \
             -extfile names -out server.pem");
        let serve = format!("s_server -accept {port} -cert server.pem -key server.key -HTTP");
        let server = Command::new("openssl")
            .args(serve.split_whitespace())
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        eventually(Duration::from_secs(30), || async {
            TcpStream::connect(("127.0.0.1", port)).await.map(drop).map_err(|e| e.to_string())
        })
        .await;
        Self { server, port, folder }
    }

    pub(super) fn url(&self) -> String {
        format!("https://127.0.0.1:{}/jwks.json", self.port)
    }

    /// The file of its authority.
    pub(super) fn authority(&self) -> String {
        self.folder.path().join("ca.pem").display().to_string()
    }
}

impl Drop for TlsProvider {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

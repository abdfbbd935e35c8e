//! HTTP and HTTPS to one service. Connections are kept and used again.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Longest answer in bytes.
const MOST: usize = 8 << 20;
/// Connections that are kept while nothing uses them.
const MOST_IDLE: usize = 8;

type Sender = SendRequest<Full<Bytes>>;

/// A service, and connections to it.
pub(crate) struct Http {
    host: String,
    port: u16,
    /// The beginning of all paths.
    path: String,
    headers: HeaderMap,
    tls: Option<TlsConnector>,
    idle: Mutex<Vec<Sender>>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// Seconds of `Retry-After`; 1 if there is none.
    pub(crate) fn retry_after(&self) -> Duration {
        let value = self.headers.get("retry-after").and_then(|value| value.to_str().ok());
        Duration::from_secs(value.and_then(|value| value.parse().ok()).unwrap_or(1))
    }
}

impl Http {
    /// A service at an address; `headers` go with every request.
    pub(crate) fn new(url: &str, headers: HeaderMap) -> Result<Self> {
        let uri: Uri = url.parse().with_context(|| format!("{url:?} is no address"))?;
        let (tls, usual_port) = match uri.scheme_str() {
            Some("http") => (None, 80),
            Some("https") => (Some(connector()), 443),
            _ => bail!("{url:?} must begin with http:// or https://"),
        };
        let host = uri.host().with_context(|| format!("{url:?} names no host"))?.to_owned();
        Ok(Self {
            host,
            port: uri.port_u16().unwrap_or(usual_port),
            path: uri.path().trim_end_matches('/').to_owned(),
            headers,
            tls,
            idle: Mutex::default(),
        })
    }

    /// Sends a request and reads its answer, within this time.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, Bytes)>,
        within: Duration,
    ) -> Result<Answer> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.path));
        request = request.header(HOST, format!("{}:{}", self.host, self.port));
        let (kind, body) = body.unzip();
        if let Some(kind) = kind {
            request = request.header(CONTENT_TYPE, kind);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(body.unwrap_or_default()))?;
        tokio::time::timeout(within, self.exchange(request)).await.context("no answer in time")?
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Answer> {
        let mut request = Some(request);
        while let Some(mut sender) = self.kept() {
            let Some(message) = request.take() else { break };
            if sender.ready().await.is_err() {
                request = Some(message);
                continue;
            }
            match sender.try_send_request(message).await {
                Ok(response) => return self.read(sender, response).await,
                // The service has closed the connection meanwhile. What was not sent goes over another one.
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = Some(unsent),
                    None => return Err(error.into_error().into()),
                },
            }
        }
        let mut sender = self.open().await?;
        let request = request.context("the request is lost")?;
        let response = sender.send_request(request).await?;
        self.read(sender, response).await
    }

    async fn read(
        &self,
        sender: Sender,
        response: http::Response<hyper::body::Incoming>,
    ) -> Result<Answer> {
        let (head, body) = response.into_parts();
        let body = Limited::new(body, MOST).collect().await;
        let body = body.map_err(|error| anyhow::anyhow!("the answer cannot be read: {error}"))?;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if !sender.is_closed() && idle.len() < MOST_IDLE {
            idle.push(sender);
        }
        Ok(Answer { status: head.status, headers: head.headers, body: body.to_bytes() })
    }

    fn kept(&self) -> Option<Sender> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    async fn open(&self) -> Result<Sender> {
        let unreachable = || format!("cannot connect to {}:{}", self.host, self.port);
        let address = (self.host.trim_matches(['[', ']']), self.port);
        let stream = TcpStream::connect(address).await.with_context(unreachable)?;
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else { return begin(stream).await };
        let name = ServerName::try_from(self.host.clone())?;
        begin(tls.connect(name, stream).await.with_context(unreachable)?).await
    }
}

/// Begins to speak HTTP on a stream.
async fn begin(
    stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
) -> Result<Sender> {
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    // Whoever uses the sender is told about errors.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

fn connector() -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

//! One GET with limits of time and size, in the clear or by TLS. Redirects are not followed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, HOST, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_util::task::AbortOnDropHandle;
use url::{Host, Url};

/// Longest time of a fetch, from the name's lookup to the last byte.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Most bytes of an answer.
const MOST_BYTES: usize = 256 << 10;

/// Fetches one address.
pub(super) struct Fetcher {
    url: Url,
}

impl Fetcher {
    pub(super) fn new(url: Url) -> Self {
        Self { url }
    }

    /// The host, for the log: an address may have secrets in its query.
    pub(super) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// The body of the answer; the error says what went wrong.
    pub(super) async fn fetch(&self) -> Result<Bytes, String> {
        match tokio::time::timeout(TIMEOUT, self.get()).await {
            Ok(body) => body,
            Err(_) => Err(format!("no answer within {TIMEOUT:?}")),
        }
    }

    async fn get(&self) -> Result<Bytes, String> {
        let host = match self.url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            None => return Err("the address has no host".to_owned()),
        };
        let port = self.url.port_or_known_default().unwrap_or(443);
        let stream = TcpStream::connect((host.as_str(), port)).await.map_err(told)?;
        if self.url.scheme() != "https" {
            return self.exchange(stream).await;
        }
        let name = ServerName::try_from(host).map_err(told)?;
        let stream = connector().connect(name, stream).await.map_err(told)?;
        self.exchange(stream).await
    }

    async fn exchange<S>(&self, stream: S) -> Result<Bytes, String>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(told)?;
        let _driven = AbortOnDropHandle::new(tokio::spawn(connection));
        let response = sender.send_request(self.request()?).await.map_err(told)?;
        if response.status() != StatusCode::OK {
            return Err(format!("the answer has the status {}", response.status()));
        }
        let body = Limited::new(response.into_body(), MOST_BYTES).collect().await.map_err(told)?;
        Ok(body.to_bytes())
    }

    fn request(&self) -> Result<Request<Empty<Bytes>>, String> {
        let path = &self.url[url::Position::BeforePath..url::Position::AfterQuery];
        let host = &self.url[url::Position::BeforeHost..url::Position::AfterPort];
        Request::get(path)
            .header(HOST, host)
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, "stampede")
            .body(Empty::new())
            .map_err(told)
    }
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Trusts the authorities that the system trusts (`SSL_CERT_FILE` names others), or Mozilla's if there are none. Read for
/// every fetch, which is seldom, so that renewed authorities need no restart.
fn connector() -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

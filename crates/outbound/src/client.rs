//! One request to an address that somebody chose, within limits, and its answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, HeaderValue, Method};
use http_body_util::Full;
use tokio::time::{Instant, timeout_at};
use url::{Host, Url};

use crate::answer::Answer;
use crate::before_write::{AtOnce, BeforeWrite};
use crate::connection::{Connection, Failed};
use crate::dial::Dialer;
use crate::error::{Error, Stage};
use crate::guard::AllowedAddresses;
use crate::pool::{Origin, Pool};

/// How long the parts of a request may take, and how much may come back.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Resolving the name, and connecting.
    pub connect: Duration,
    /// Everything.
    pub whole: Duration,
    /// The body of the answer. What has come by then counts.
    pub body: Duration,
    /// Most bytes of a body.
    pub most_body: usize,
    /// Connections of one origin that wait for another request; 0: none does.
    pub idle: usize,
    /// How long they wait.
    pub idle_for: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            whole: Duration::from_secs(15),
            body: Duration::from_secs(5),
            most_body: 1 << 20,
            idle: 8,
            idle_for: Duration::from_secs(2),
        }
    }
}

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// Where to.
    pub url: Url,
    /// The headers; host and length are added.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// Sends requests. Cheap to clone; all clones share their connections.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    dialer: Arc<Dialer>,
    limits: Limits,
    pool: Pool,
}

impl Client {
    /// Reaches public addresses and those that are allowed besides.
    pub fn new(allowed: AllowedAddresses, limits: Limits) -> Self {
        Self::with_dialer(Arc::new(Dialer::new(allowed)), limits)
    }

    /// Connects with a dialer that others use, too.
    pub fn with_dialer(dialer: Arc<Dialer>, limits: Limits) -> Self {
        let pool = Pool::new(limits.idle, limits.idle_for);
        Self { shared: Arc::new(Shared { dialer, limits, pool }) }
    }

    /// The addresses that may be reached besides public ones.
    pub fn allowed(&self) -> &AllowedAddresses {
        self.shared.dialer.allowed()
    }

    /// Sends one request. A request that certainly was not written, because its connection had been closed, is sent once more
    /// on a new connection.
    pub async fn send(&self, request: Request) -> Result<Answer, Error> {
        self.send_when(request, &mut AtOnce).await
    }

    /// Sends one request as soon as the caller allows it, who is asked when the connection is there.
    pub async fn send_when(
        &self,
        request: Request,
        before: &mut dyn BeforeWrite,
    ) -> Result<Answer, Error> {
        let Shared { limits, pool, .. } = &*self.shared;
        let until = Instant::now() + limits.whole;
        let origin = origin(&request.url)?;
        let mut http = http_request(request)?;
        if let Some(connection) = pool.take(&origin) {
            let connection = self.allowed_on(connection, &origin, before).await?;
            match self.exchange(connection, http, &origin, until).await {
                Ok(answer) => return Ok(answer),
                Err(Failed::Unwritten(request)) => http = *request,
                Err(Failed::Lost(error) | Failed::Unanswered(error)) => return Err(error),
            }
        }
        let connection = self.open(&origin, until).await?;
        let connection = self.allowed_on(connection, &origin, before).await?;
        match self.exchange(connection, http, &origin, until).await {
            Ok(answer) => Ok(answer),
            Err(Failed::Unwritten(_)) => {
                Err(Error::not_sent(Stage::Write, "the connection was closed at once"))
            }
            Err(Failed::Lost(error) | Failed::Unanswered(error)) => Err(error),
        }
    }

    async fn open(&self, origin: &Origin, until: Instant) -> Result<Connection, Error> {
        let Shared { dialer, limits, .. } = &*self.shared;
        let stream = dialer.connect(&origin.host, origin.port, limits.connect).await?;
        match origin.is_secure {
            false => Connection::open(stream).await,
            true => Connection::open(dialer.secure(stream, &origin.host, until).await?).await,
        }
    }

    /// Asks the caller whether the request may leave on a connection, which waits for another one if not.
    async fn allowed_on(
        &self,
        connection: Connection,
        origin: &Origin,
        before: &mut dyn BeforeWrite,
    ) -> Result<Connection, Error> {
        if before.allows().await {
            return Ok(connection);
        }
        if self.shared.limits.idle > 0 {
            self.shared.pool.put(origin.clone(), connection);
        }
        Err(Error::not_sent(Stage::NotAllowed, "the caller does not let it leave now"))
    }

    /// Sends a request on a connection, which waits for another one afterwards.
    async fn exchange(
        &self,
        mut connection: Connection,
        request: http::Request<Full<Bytes>>,
        origin: &Origin,
        until: Instant,
    ) -> Result<Answer, Failed> {
        let Shared { limits, pool, .. } = &*self.shared;
        connection.rearm();
        let Ok(response) = timeout_at(until, connection.send(request)).await else {
            let reason = format!("no answer within {:?}", limits.whole);
            return Err(match connection.has_written() {
                true => Failed::Unanswered(Error::unanswered(reason)),
                false => Failed::Lost(Error::not_sent(Stage::Write, reason)),
            });
        };
        let response = response?;
        // Before `until`: an answer that has a status must not be lost because its body has no end.
        let body_until = (until - Duration::from_millis(200)).min(Instant::now() + limits.body);
        let answer = Answer::read(response, body_until, limits.most_body).await;
        // `is_free` does not wait after a body that was read to its end.
        if answer.is_whole
            && limits.idle > 0
            && timeout_at(body_until, connection.is_free()).await == Ok(true)
        {
            pool.put(origin.clone(), connection);
        }
        Ok(answer)
    }
}

/// Where a URL leads.
fn origin(url: &Url) -> Result<Origin, Error> {
    let wrong = |reason: &str| Error::not_sent(Stage::Request, reason);
    let is_secure = match url.scheme() {
        "https" => true,
        "http" => false,
        _ => return Err(wrong("the URL begins with neither https:// nor http://")),
    };
    let host = match url.host() {
        Some(Host::Domain(name)) => name.to_owned(),
        Some(Host::Ipv4(address)) => address.to_string(),
        Some(Host::Ipv6(address)) => address.to_string(),
        None => return Err(wrong("the URL has no host")),
    };
    let port = url.port_or_known_default().unwrap_or(443);
    Ok(Origin { is_secure, host, port })
}

fn http_request(request: Request) -> Result<http::Request<Full<Bytes>>, Error> {
    let Request { method, url, headers, body } = request;
    // Neither names the URL.
    let wrong = |_| Error::not_sent(Stage::Request, "the URL cannot be sent as HTTP");
    let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let host = HeaderValue::try_from(host)
        .map_err(|_| Error::not_sent(Stage::Request, "the host cannot be sent as HTTP"))?;
    let mut http = http::Request::builder().method(method).uri(path);
    if let Some(all) = http.headers_mut() {
        all.extend(headers);
        all.insert(HOST, host);
    }
    http.body(Full::from(body)).map_err(wrong)
}

#[cfg(test)]
mod tests;

//! Mail, over a server of the account's owner.
//!
//! ```text
//!   connect ─▶ greeting ─▶ TLS ─▶ login ─▶ MAIL ─▶ RCPT ─▶ DATA ─▶ content ─▶ the final dot ─▶ reply
//!   └───────────────────────── not sent ──────────────────────────────────┘ └── unknown ──┘
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `smtp/session.rs` | one connection: the steps above, each with a time limit |
//! | `smtp/wire.rs` | the socket, plain or secured, and `STARTTLS` |
//! | `smtp/idle.rs` | connections that wait for the next message |
//! | `smtp/mail.rs` | a message as a mail |
//! | `smtp/replies.rs` | which outcome follows from a reply: pure |
//! | `smtp/bounces.rs` | bounces and complaints that come later |

mod bounces;
mod idle;
mod mail;
mod replies;
mod session;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stampede_model::campaign::{Failure, Outcome};
use stampede_outbound::{BeforeWrite, Dialer};
use tokio::sync::Semaphore;
use url::Url;

pub(crate) use self::bounces::receipts;
use self::idle::Idle;
pub use self::replies::is_mailbox_full;
use self::session::{Session, Trouble};
use crate::answers;
use crate::message::Message;
use crate::settings::{Part, Reader};
use crate::webhook;

/// Most connections of an account.
pub(crate) const MOST_CONNECTIONS: u32 = 4;
/// How long a connection waits for another message.
const IDLE_FOR: Duration = Duration::from_secs(60);

/// How long the steps of a mail may take: RFC 5321, 4.5.3.2.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) connect: Duration,
    pub(crate) command: Duration,
    /// Writing the content, and the answer after the final dot.
    pub(crate) dot: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Settings {
    #[serde(with = "crate::settings::as_text")]
    url: Url,
    from: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reply_to: Option<String>,
    /// The name that the server is greeted with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hello: Option<String>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Credentials {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    password: Option<String>,
    /// What bounces are signed with: `whsec_…`, the present one and former ones.
    #[serde(default)]
    bounce_secret: Vec<String>,
}

pub(crate) fn read(reader: &mut Reader) -> Option<(Settings, Credentials)> {
    let url = reader.checked(Part::Settings, "url", 300, |text| {
        let url: Url = text
            .parse()
            .map_err(|error| format!("must be a URL such as smtps://mail.example.com: {error}"))?;
        Server::of(&url).map(|_| url)
    });
    let from = reader.checked(Part::Settings, "from", 300, mailbox);
    let reply_to = reader.checked_if_given(Part::Settings, "replyTo", 300, mailbox);
    let hello = reader.checked_if_given(Part::Settings, "hello", 200, |text| {
        crate::settings::word(text, "-.", 1)
    });
    let user = reader.text(Part::Credentials, "user", 300);
    let password = reader.text(Part::Credentials, "password", 1_000);
    let bounce_secret = webhook::secrets(reader, "bounceSecret");
    match (&user, &password) {
        (Some(_), None) => {
            reader.wrong(Part::Credentials, "password", "is missing: there is a user")
        }
        (None, Some(_)) => {
            reader.wrong(Part::Credentials, "user", "is missing: there is a password")
        }
        _ => {}
    }
    Some((
        Settings { url: url?, from: from?, reply_to, hello },
        Credentials { user, password, bounce_secret },
    ))
}

fn mailbox(text: &str) -> Result<String, String> {
    match mail::mailbox(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(format!("must be an address such as Ann <ann@example.com>: {error}")),
    }
}

/// Where mails go, and how the way there is secured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    host: String,
    port: u16,
    security: Security,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Security {
    /// TLS from the first byte.
    Tls,
    /// TLS after a few words, or no mail.
    StartTls,
    /// None: the owner wrote so.
    None,
}

impl Server {
    /// Reads `smtps://host`, `smtp://host`, `smtp://host?tls=none`.
    fn of(url: &Url) -> Result<Self, String> {
        let (default_port, is_secure) = match url.scheme() {
            "smtps" => (465, true),
            "smtp" => (587, false),
            _ => return Err("must begin with smtps:// or smtp://".to_owned()),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                "must have no user and no password: they belong into credentials".to_owned()
            );
        }
        if !matches!(url.path(), "" | "/") || url.fragment().is_some() {
            return Err("must have nothing behind host and port but ?tls=none".to_owned());
        }
        let security = match (is_secure, url.query()) {
            (true, None) => Security::Tls,
            (false, None) => Security::StartTls,
            (false, Some("tls=none")) => Security::None,
            _ => return Err("knows only ?tls=none behind it, with smtp://".to_owned()),
        };
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or("must have a host")?;
        let host = host.trim_matches(['[', ']']).to_owned();
        let port = url.port().unwrap_or(default_port);
        if port < 1024 && ![25, 465, 587].contains(&port) {
            return Err(format!("has port {port}, which belongs to another service"));
        }
        Ok(Self { host, port, security })
    }
}

/// An account that is ready to send.
pub(crate) struct Sender {
    settings: Settings,
    credentials: Credentials,
    dialer: Arc<Dialer>,
    limits: Limits,
    turns: Semaphore,
    idle: Idle,
}

impl Sender {
    pub(crate) fn new(
        settings: Settings,
        credentials: Credentials,
        dialer: Arc<Dialer>,
        limits: Limits,
    ) -> Self {
        let turns = Semaphore::new(MOST_CONNECTIONS as usize);
        let idle = Idle::new(IDLE_FOR);
        Self { settings, credentials, dialer, limits, turns, idle }
    }

    /// Sends one message to one recipient.
    pub(crate) async fn send(&self, message: &Message, before: &mut dyn BeforeWrite) -> Outcome {
        let mail = match mail::Mail::of(&self.settings, message) {
            Ok(mail) => mail,
            Err(outcome) => return outcome,
        };
        // Never closed.
        let _turn = self.turns.acquire().await;
        let mut session = match self.session().await {
            Ok(session) => session,
            Err(trouble) => return replies::outcome(&trouble),
        };
        if !before.allows().await {
            self.idle.put(session);
            return answers::not_allowed();
        }
        match session.deliver(&mail, &self.limits).await {
            Ok(()) => {
                self.idle.put(session);
                Outcome::Sent { provider_id: Some(mail.id), moved_to: None }
            }
            Err(trouble) => {
                if trouble.leaves_connection() {
                    self.idle.put(session);
                }
                replies::outcome(&trouble)
            }
        }
    }

    /// A connection that waited and still works, or a new one.
    async fn session(&self) -> Result<Session, Trouble> {
        while let Some(mut session) = self.idle.take() {
            if session.is_usable(self.limits.connect).await {
                return Ok(session);
            }
        }
        Session::open(&self.settings, &self.credentials, &self.dialer, &self.limits).await
    }

    /// Connects, logs in, and sends no mail.
    pub(crate) async fn check(&self) -> Result<String, Failure> {
        let failed = |trouble: &Trouble| {
            let outcome = replies::outcome(trouble);
            outcome.failure().cloned().unwrap_or_else(|| Failure::new("no_answer", "no answer"))
        };
        let opened =
            Session::open(&self.settings, &self.credentials, &self.dialer, &self.limits).await;
        let mut session = opened.map_err(|trouble| failed(&trouble))?;
        session.noop(&self.limits).await.map_err(|trouble| failed(&trouble))?;
        let wrong = |reason: &str| Failure::new("settings", reason);
        let author = mail::Author::of(&self.settings).map_err(|reason| wrong(&reason))?;
        if author.needs_utf8() && !session.takes_utf8() {
            session.quit().await;
            return Err(wrong(session::SENDER_UNFIT));
        }
        let name = session.server_name();
        session.quit().await;
        Ok(match self.credentials.user {
            Some(_) => format!("the server {name} knows the user"),
            None => format!("the server {name}, without a login"),
        })
    }
}

#[cfg(test)]
mod tests;

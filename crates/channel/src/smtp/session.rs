//! One connection to a mail server, step by step. It is always known whether the final dot was written: before it, no server
//! takes over a mail.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials as Login, Mechanism};
use lettre::transport::smtp::client::AsyncSmtpConnection;
use lettre::transport::smtp::commands::{Data, Mail as MailFrom, Noop, Quit, Rcpt, Rset};
use lettre::transport::smtp::extension::{ClientId, Extension, MailParameter};
use lettre::transport::smtp::response::Response;
use stampede_outbound::Dialer;
use tokio::time::timeout;

use super::mail::Mail;
use super::wire::Wire;
use super::{Credentials, Limits, Server, Settings};

/// How long a connection that is no longer needed may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(5);
/// Replies that say that a command was carried out.
const DONE: RangeInclusive<u16> = 200..=299;
/// The reply that asks for a mail's content.
const GO_AHEAD: RangeInclusive<u16> = 354..=354;
/// The reply by which a server takes over a mail.
const TAKEN_OVER: RangeInclusive<u16> = 250..=250;

/// What is wrong if a server does not take a sender's address.
pub(super) const SENDER_UNFIT: &str = "the address from or replyTo has letters before its @ that the server does not take (no SMTPUTF8)";
/// What is wrong if a server does not take a recipient's address.
const RECIPIENT_UNFIT: &str = "the address has letters that the server does not take (no SMTPUTF8)";

/// How far a mail came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Connect,
    Greeting,
    Login,
    Sender,
    Recipient,
    Data,
    Content,
    /// The final dot was written.
    Dot,
}

/// Why a step failed.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) step: Step,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) enum What {
    NotConnected(stampede_outbound::Error),
    /// The server said no, or something that is no reply to this step.
    Reply {
        code: u16,
        text: String,
    },
    /// The connection broke, or nobody answered.
    Broken(String),
    /// Server and account do not fit.
    Impossible(String),
    /// The server cannot take this recipient's address.
    Unfit(String),
}

impl Trouble {
    /// Whether the connection can take another mail. After a reply that fits no step, nobody knows which command the next reply
    /// belongs to.
    pub(super) fn leaves_connection(&self) -> bool {
        let is_refusal = matches!(self.what, What::Reply { code: 400.., .. })
            && !matches!(self.what, What::Reply { code: 421, .. });
        (is_refusal || matches!(self.what, What::Unfit(_))) && self.step >= Step::Sender
    }
}

/// A connection that is logged in.
pub(super) struct Session {
    connection: AsyncSmtpConnection,
}

impl Session {
    pub(super) async fn open(
        settings: &Settings,
        credentials: &Credentials,
        dialer: &Dialer,
        limits: &Limits,
    ) -> Result<Self, Trouble> {
        let wrong = |reason| Trouble { step: Step::Connect, what: What::Impossible(reason) };
        let server = Server::of(&settings.url).map_err(wrong)?;
        let hello = hello(settings);
        let wire = Wire::open(&server, &hello, dialer, limits).await?;
        let client = ClientId::Domain(hello);
        let greeted = AsyncSmtpConnection::connect_with_transport(Box::new(wire), &client);
        let connection = within(limits.command, Step::Greeting, greeted).await?;
        let mut session = Self { connection };
        if let (Some(user), Some(password)) = (&credentials.user, &credentials.password) {
            let login = Login::new(user.clone(), password.clone());
            let mechanisms = [Mechanism::Plain, Mechanism::Login];
            let auth = session.connection.auth(&mechanisms, &login);
            let reply = within(limits.command, Step::Login, auth).await?;
            expect(Step::Login, &reply, DONE)?;
        }
        Ok(session)
    }

    /// Sends one mail.
    pub(super) async fn deliver(&mut self, mail: &Mail, limits: &Limits) -> Result<(), Trouble> {
        let mut parameters = Vec::new();
        if mail.needs_utf8() {
            if !self.takes_utf8() {
                let what = match mail.sender_needs_utf8 {
                    true => What::Impossible(SENDER_UNFIT.to_owned()),
                    false => What::Unfit(RECIPIENT_UNFIT.to_owned()),
                };
                return Err(Trouble { step: Step::Sender, what });
            }
            parameters.push(MailParameter::SmtpUtfEight);
        }
        let limit = limits.command;
        let from = MailFrom::new(Some(mail.from.clone()), parameters);
        self.command(limit, Step::Sender, from, DONE).await?;
        let to = Rcpt::new(mail.to.clone(), Vec::new());
        self.command(limit, Step::Recipient, to, DONE).await?;
        self.command(limit, Step::Data, Data, GO_AHEAD).await?;
        // The dot is written as soon as the iterator has no more pieces.
        let is_written = AtomicBool::new(false);
        let mut pieces = mail.content.chunks(64 << 10);
        let pieces = std::iter::from_fn(|| {
            let piece = pieces.next();
            is_written.store(piece.is_none(), Ordering::Release);
            piece
        });
        let sent = within(limits.dot, Step::Content, self.connection.message_iter(pieces)).await;
        match sent {
            Ok(reply) => expect(Step::Dot, &reply, TAKEN_OVER),
            Err(trouble) if is_written.load(Ordering::Acquire) => {
                Err(Trouble { step: Step::Dot, ..trouble })
            }
            Err(trouble) => Err(trouble),
        }
    }

    /// A command, whose reply must have one of the codes: the library takes every 2xx and 3xx for a success.
    async fn command(
        &mut self,
        limit: Duration,
        step: Step,
        command: impl Display,
        codes: RangeInclusive<u16>,
    ) -> Result<(), Trouble> {
        let reply = within(limit, step, self.connection.command(command)).await?;
        expect(step, &reply, codes)
    }

    /// Whether a connection that has waited still works. It forgets a mail that was refused in the middle.
    pub(super) async fn is_usable(&mut self, limit: Duration) -> bool {
        self.command(limit, Step::Greeting, Rset, DONE).await.is_ok()
    }

    pub(super) async fn noop(&mut self, limits: &Limits) -> Result<(), Trouble> {
        self.command(limits.command, Step::Login, Noop, DONE).await
    }

    /// Whether the server takes addresses with letters beyond ASCII.
    pub(super) fn takes_utf8(&self) -> bool {
        self.connection.server_info().supports_feature(Extension::SmtpUtfEight)
    }

    /// The name that the server has given itself.
    pub(super) fn server_name(&self) -> String {
        self.connection.server_info().name().chars().filter(|c| !c.is_control()).take(100).collect()
    }

    /// Ends the connection in good order.
    pub(super) async fn quit(mut self) {
        let _ = timeout(GOODBYE, self.connection.command(Quit)).await;
    }
}

/// Looks whether a reply has one of the codes.
fn expect(step: Step, reply: &Response, codes: RangeInclusive<u16>) -> Result<(), Trouble> {
    let code = u16::from(reply.code());
    if codes.contains(&code) {
        return Ok(());
    }
    let text = reply.message().collect::<Vec<_>>().join(" ");
    Err(Trouble { step, what: What::Reply { code, text } })
}

/// The name that servers are greeted with: the domain of the sender, if nothing else is set.
fn hello(settings: &Settings) -> String {
    let domain = || {
        let address =
            settings.from.rsplit_once('@').map(|(_, domain)| domain.trim_end_matches('>'));
        url::Host::parse(address.unwrap_or_default().trim()).ok().map(|host| host.to_string())
    };
    settings.hello.clone().or_else(domain).unwrap_or_else(|| "[127.0.0.1]".to_owned())
}

/// A step within its time limit.
async fn within<T>(
    limit: Duration,
    step: Step,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Trouble> {
    let what = match timeout(limit, work).await {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => told(&error),
        Err(_) => What::Broken(format!("no answer within {limit:?}")),
    };
    Err(Trouble { step, what })
}

fn told(error: &Error) -> What {
    let text = || std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    match error.status() {
        Some(code) => What::Reply { code: code.into(), text: text() },
        None if error.is_client() => What::Impossible(text()),
        None => What::Broken(error.to_string()),
    }
}

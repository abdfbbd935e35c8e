//! A message as a mail. No text of a person can add a header: line breaks become spaces, and the rest is encoded.

use lettre::message::header::{
    ContentDisposition, ContentTransferEncoding, ContentType, HeaderName, HeaderValue,
};
use lettre::message::{Body as Encoded, Mailbox, MultiPart, SinglePart};
use lettre::{Address, Message as Lettre};
use stampede_model::campaign::{Failure, Outcome};
use url::Url;

use super::Settings;
use crate::message::{Attachment, Message};

/// Who writes, and who gets the answers.
pub(super) struct Author {
    from: Mailbox,
    reply_to: Option<Mailbox>,
}

impl Author {
    /// The author of all mails of an account; the error says what is wrong with the settings.
    pub(super) fn of(settings: &Settings) -> Result<Self, String> {
        let told = |error| format!("the sender's address: {error}");
        let from = mailbox(&settings.from).map_err(told)?;
        let reply_to = settings.reply_to.as_deref().map(mailbox).transpose().map_err(told)?;
        Ok(Self { from, reply_to })
    }

    /// Whether an address has letters beyond ASCII.
    pub(super) fn needs_utf8(&self) -> bool {
        let has_letters = |mailbox: &Mailbox| !is_ascii(&mailbox.email);
        has_letters(&self.from) || self.reply_to.as_ref().is_some_and(has_letters)
    }
}

/// A mail, ready to be written.
#[derive(Debug)]
pub(super) struct Mail {
    pub(super) from: Address,
    pub(super) to: Address,
    /// Whether an address of ours has letters beyond ASCII: then no recipient can be written to.
    pub(super) sender_needs_utf8: bool,
    /// The `Message-ID`: the same in every attempt.
    pub(super) id: String,
    pub(super) content: Vec<u8>,
}

impl Mail {
    /// Makes a mail of a message.
    pub(super) fn of(settings: &Settings, message: &Message) -> Result<Self, Outcome> {
        let wrong = |reason: String| Outcome::Account(Failure::new("settings", &reason));
        let author = Author::of(settings).map_err(wrong)?;
        let sender_needs_utf8 = author.needs_utf8();
        let Author { from, reply_to } = author;
        let to = address(&message.address)?;
        let id = format!("<{}@{}>", message.recipient, from.email.domain());
        let mut builder = Lettre::builder()
            .from(from.clone())
            .to(Mailbox::new(None, to.clone()))
            .subject(one_line(message.subject.as_deref().unwrap_or_default()))
            .message_id(Some(id.clone()))
            .date_now()
            .raw_header(ascii("Precedence", "bulk"));
        if let Some(reply_to) = reply_to {
            builder = builder.reply_to(reply_to);
        }
        if let Some(url) =
            message.unsubscribe_url.as_deref().and_then(|url| url.parse::<Url>().ok())
            && url.scheme() == "https"
        {
            // RFC 8058: one click, for which https is required. A parsed URL is ASCII without spaces.
            builder = builder
                .raw_header(ascii("List-Unsubscribe", &format!("<{url}>")))
                .raw_header(ascii("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"));
        }
        let content_error = |error: lettre::error::Error| {
            Outcome::Content(Failure::new("mail", &error.to_string()))
        };
        let built = body(message)?.build(builder).map_err(content_error)?;
        let content = built.formatted();
        Ok(Self { from: from.email, to, sender_needs_utf8, id, content })
    }

    /// Whether an address has letters beyond ASCII.
    pub(super) fn needs_utf8(&self) -> bool {
        self.sender_needs_utf8 || !is_ascii(&self.to)
    }
}

fn is_ascii(address: &Address) -> bool {
    AsRef::<str>::as_ref(address).is_ascii()
}

/// A name and an address, its domain in ASCII: only few servers take another one.
pub(super) fn mailbox(text: &str) -> Result<Mailbox, String> {
    let Mailbox { name, email } = text.parse::<Mailbox>().map_err(|error| error.to_string())?;
    if email.domain().is_ascii() {
        return Ok(Mailbox { name, email });
    }
    let domain = url::Host::parse(email.domain()).map_err(|error| error.to_string())?;
    let email = Address::new(email.user(), domain.to_string());
    Ok(Mailbox { name, email: email.map_err(|error| error.to_string())? })
}

/// The address of a recipient, its domain in ASCII.
fn address(text: &str) -> Result<Address, Outcome> {
    let none = |reason: String| Outcome::Bounced(Failure::new("invalid_address", &reason), None);
    let (user, domain) =
        text.rsplit_once('@').ok_or_else(|| none("the address has no @".to_owned()))?;
    let domain = url::Host::parse(domain).map_err(|error| none(error.to_string()))?;
    Address::new(user, domain.to_string()).map_err(|error| none(error.to_string()))
}

/// A header whose value is ASCII without line breaks.
fn ascii(name: &'static str, value: &str) -> HeaderValue {
    let name = HeaderName::new_from_ascii_str(name);
    // Folding would break a long URL.
    HeaderValue::dangerous_new_pre_encoded(name, value.to_owned(), value.to_owned())
}

/// A text on one line.
fn one_line(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    line.trim().to_owned()
}

/// The body of a mail: one part, or several.
enum Body {
    One(SinglePart),
    Many(MultiPart),
}

impl Body {
    fn build(
        self,
        builder: lettre::message::MessageBuilder,
    ) -> Result<Lettre, lettre::error::Error> {
        match self {
            Self::One(part) => builder.singlepart(part),
            Self::Many(parts) => builder.multipart(parts),
        }
    }
}

/// A text with the line endings of mail. The library inserts them one by one, which takes minutes for a long text.
fn lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n").replace('\n', "\r\n")
}

fn body(message: &Message) -> Result<Body, Outcome> {
    let text = || SinglePart::plain(lines(&message.text));
    let body = match &message.html {
        None => Body::One(text()),
        Some(html) if message.text.is_empty() => Body::One(SinglePart::html(lines(html))),
        Some(html) => Body::Many(
            MultiPart::alternative().singlepart(text()).singlepart(SinglePart::html(lines(html))),
        ),
    };
    if message.attachments.is_empty() {
        return Ok(body);
    }
    let mut mixed = match body {
        Body::One(part) => MultiPart::mixed().singlepart(part),
        Body::Many(parts) => MultiPart::mixed().multipart(parts),
    };
    for attachment in &message.attachments {
        mixed = mixed.singlepart(attached(attachment)?);
    }
    Ok(Body::Many(mixed))
}

fn attached(attachment: &Attachment) -> Result<SinglePart, Outcome> {
    let kind = ContentType::parse(&attachment.content_type)
        .map_err(|error| Outcome::Content(Failure::new("attachment", &error.to_string())))?;
    let name = one_line(&attachment.name).replace(['/', '\\'], "_");
    // Always base64: a text as it is could have lines that end the mail.
    let content =
        Encoded::new_with_encoding(attachment.bytes.to_vec(), ContentTransferEncoding::Base64)
            .map_err(|_| {
                Outcome::Content(Failure::new("attachment", "cannot be written as base64"))
            })?;
    Ok(SinglePart::builder()
        .header(kind)
        .header(ContentDisposition::attachment(&name))
        .body(content))
}

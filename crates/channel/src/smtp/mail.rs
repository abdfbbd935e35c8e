//! A message as a mail. No text of a person can add a header: line breaks become spaces, and the rest is encoded.

use lettre::message::header::{ContentDisposition, ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart, SinglePart};
use lettre::{Address, Message as Lettre};
use stampede_model::campaign::{Failure, Outcome};
use url::Url;

use super::Settings;
use crate::message::{Attachment, Message};

/// A mail, ready to be written.
#[derive(Debug)]
pub(super) struct Mail {
    pub(super) from: Address,
    pub(super) to: Address,
    /// Whether an address has letters beyond ASCII.
    pub(super) needs_utf8: bool,
    /// The `Message-ID`: the same in every attempt.
    pub(super) id: String,
    pub(super) content: Vec<u8>,
}

impl Mail {
    /// Makes a mail of a message.
    pub(super) fn of(settings: &Settings, message: &Message) -> Result<Self, Outcome> {
        let wrong = |error: lettre::address::AddressError| {
            Outcome::Account(Failure::new("settings", &format!("the sender's address: {error}")))
        };
        let from: Mailbox = settings.from.parse().map_err(wrong)?;
        let reply_to = settings.reply_to.as_deref().map(str::parse::<Mailbox>).transpose();
        let reply_to = reply_to.map_err(wrong)?;
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
        let is_ascii = |address: &Address| AsRef::<str>::as_ref(address).is_ascii();
        let needs_utf8 = !is_ascii(&from.email) || !is_ascii(&to);
        let content = built.formatted();
        Ok(Self { from: from.email, to, needs_utf8, id, content })
    }
}

/// The address, its domain in ASCII.
fn address(text: &str) -> Result<Address, Outcome> {
    let never = |reason: String| Outcome::Never(Failure::new("invalid_address", &reason), None);
    let (user, domain) =
        text.rsplit_once('@').ok_or_else(|| never("the address has no @".to_owned()))?;
    let domain = url::Host::parse(domain).map_err(|error| never(error.to_string()))?;
    Address::new(user, domain.to_string()).map_err(|error| never(error.to_string()))
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
    Ok(SinglePart::builder()
        .header(kind)
        .header(ContentDisposition::attachment(&name))
        .body(attachment.bytes.to_vec()))
}

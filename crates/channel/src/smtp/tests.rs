//! Servers of the account's owner, mails and bounces.

mod servers;

use std::collections::BTreeMap;

use bytes::Bytes;
use http::HeaderMap;
use stampede_model::campaign::SuppressionReason;
use stampede_model::{RecipientId, Timestamp};
use stampede_outbound::signature;

use super::*;
use crate::message::tests::message;
use crate::message::{Attachment, Message};
use crate::notice::{Incoming, Notice, Refused, Status};

#[test]
fn a_url_says_how_the_way_is_secured() {
    let server = |url: &str| Server::of(&url.parse().unwrap());
    let is = |host: &str, port, security| Ok(Server { host: host.to_owned(), port, security });
    assert_eq!(server("smtps://mail.example"), is("mail.example", 465, Security::Tls));
    assert_eq!(server("smtp://mail.example/"), is("mail.example", 587, Security::StartTls));
    assert_eq!(server("smtp://mail.example:25"), is("mail.example", 25, Security::StartTls));
    assert_eq!(server("smtp://[::1]:2525?tls=none"), is("::1", 2525, Security::None));
}

fn settings(from: &str) -> Settings {
    let url = "smtp://mail.example".parse().unwrap();
    Settings { url, from: from.to_owned(), reply_to: None, hello: None }
}

fn text_of(message: &Message) -> String {
    let mail = mail::Mail::of(&settings("Änn <ann@example.com>"), message).unwrap();
    String::from_utf8(mail.content).expect("headers and bodies are ASCII")
}

fn mail_message() -> Message {
    Message {
        address: "bob@example.net".to_owned(),
        subject: Some("Grüße".to_owned()),
        unsubscribe_url: Some("https://me.example/u/token".to_owned()),
        ..message()
    }
}

#[test]
fn the_headers_of_a_mail_are_those_that_receivers_ask_for() {
    let text = text_of(&mail_message());
    let id = message().recipient;
    for line in [
        format!("Message-ID: <{id}@example.com>\r\n"),
        "Precedence: bulk\r\n".to_owned(),
        "List-Unsubscribe: <https://me.example/u/token>\r\n".to_owned(),
        "List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n".to_owned(),
        "To: bob@example.net\r\n".to_owned(),
    ] {
        assert!(text.contains(&line), "{line} in {text}");
    }
    let mut plain = mail_message();
    plain.unsubscribe_url = Some("http://me.example/u".to_owned());
    assert!(!text_of(&plain).contains("List-Unsubscribe"), "one click wants https");
}

#[test]
fn no_text_adds_a_header() {
    let evil = "x\r\nBcc: victim@example.org\r\n\r\nbody";
    let mut message = mail_message();
    message.subject = Some(evil.to_owned());
    message.unsubscribe_url = Some(format!("https://me.example/{evil}"));
    message.attachments = vec![Attachment {
        name: format!("{evil}.pdf"),
        content_type: "application/pdf".to_owned(),
        bytes: Bytes::from_static(b"x"),
    }];
    message.fields = BTreeMap::from([("a".to_owned(), evil.to_owned())]);
    let text = text_of(&message);
    let (head, _) = text.split_once("\r\n\r\n").unwrap();
    assert!(!head.lines().any(|line| line.to_lowercase().starts_with("bcc")), "{head}");
    assert!(!text.contains("\r\nBcc:"), "{text}");
    message.attachments[0].content_type = format!("text/plain{evil}");
    let refused = mail::Mail::of(&settings("a@b.example"), &message).unwrap_err();
    assert_eq!(refused.as_str(), "content");
    for address in [
        "",
        "bob",
        "a@b\r\nRCPT TO:<x@y.example>",
        "a b@c.example",
        "@c.example",
        "a@",
        "<a@b.example>",
    ] {
        let message = Message { address: address.to_owned(), ..mail_message() };
        let refused = mail::Mail::of(&settings("a@b.example"), &message).unwrap_err();
        assert_eq!(refused.as_str(), "bounced", "{address}");
    }
}

#[test]
fn a_domain_with_other_letters_is_written_in_ascii() {
    let of = |address: &str| {
        let message = Message { address: address.to_owned(), ..mail_message() };
        let mail = mail::Mail::of(&settings("a@b.example"), &message).unwrap();
        (mail.to.to_string(), mail.needs_utf8())
    };
    assert_eq!(of("bob@пример.рф"), ("bob@xn--e1afmkfd.xn--p1ai".to_owned(), false));
    assert_eq!(of("боб@example.com"), ("боб@example.com".to_owned(), true));
}

#[test]
fn the_domain_of_a_sender_is_written_in_ascii() {
    let of = |from: &str, reply_to: Option<&str>| {
        let settings = Settings { reply_to: reply_to.map(str::to_owned), ..settings(from) };
        mail::Mail::of(&settings, &mail_message())
    };
    let mail = of("Зоя <info@пример.рф>", Some("ответ <re@пример.рф>")).unwrap();
    assert_eq!(mail.from.to_string(), "info@xn--e1afmkfd.xn--p1ai");
    assert!(!mail.needs_utf8() && !mail.sender_needs_utf8);
    assert!(mail.id.ends_with("@xn--e1afmkfd.xn--p1ai>"), "{}", mail.id);
    let text = String::from_utf8(mail.content).unwrap();
    assert!(text.is_ascii(), "{text}");
    for line in ["<info@xn--e1afmkfd.xn--p1ai>\r\n", "<re@xn--e1afmkfd.xn--p1ai>\r\n"] {
        assert!(text.contains(line), "{text}");
    }
    for (from, reply_to) in [("зоя@example.com", None), ("a@b.example", Some("зоя@example.com"))]
    {
        let mail = of(from, reply_to).unwrap();
        assert!(mail.needs_utf8() && mail.sender_needs_utf8, "{from}");
    }
    let wrong = of("a@при мер.рф", None).unwrap_err();
    assert_eq!((wrong.as_str(), wrong.failure().unwrap().code.as_str()), ("account", "settings"));
}

#[test]
fn an_attachment_is_written_in_base64_whatever_it_is() {
    let attachment = |bytes: &'static [u8]| Attachment {
        name: "a.txt".to_owned(),
        content_type: "text/plain".to_owned(),
        bytes: Bytes::from_static(bytes),
    };
    let of = |bytes| text_of(&Message { attachments: vec![attachment(bytes)], ..mail_message() });
    // As it is, the line with a dot would end the mail, and a server would take what follows for commands.
    let text = of(b"a\n.\nRSET\n");
    assert!(text.contains("Content-Transfer-Encoding: base64\r\n\r\nYQouClJTRVQK\r\n"), "{text}");
    assert!(of(b"plain").contains("\r\n\r\ncGxhaW4=\r\n"));
}

#[test]
fn a_bounce_counts_only_if_it_is_signed() {
    let secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3";
    let id = RecipientId::from_bytes([1; 16]);
    let now = Timestamp::from_second(1_700_000_000).unwrap();
    let told = |secrets: &[&str], body: &str| {
        let keys = [signature::parse_secret(secret).unwrap()];
        let mut headers = HeaderMap::new();
        headers.insert("webhook-id", "b1".parse().unwrap());
        headers.insert("webhook-timestamp", "1700000000".parse().unwrap());
        let signed = signature::signatures(&keys, "b1", now, body);
        headers.insert("webhook-signature", signed.parse().unwrap());
        let bounce_secret = secrets.iter().map(|secret| (*secret).to_owned()).collect();
        let credentials = Credentials { user: None, password: None, bounce_secret };
        receipts(
            &credentials,
            &Incoming { headers: &headers, url: "", query: "", body: body.as_bytes(), now },
        )
    };
    let receipt = |status, code: Option<&str>, suppress| {
        let (code, recipient) = (code.map(str::to_owned), Some(id));
        Notice::Receipt {
            recipient,
            provider_id: None,
            status,
            code,
            detail: None,
            is_bounce: suppress == Some(SuppressionReason::Bounce),
            suppress,
            addresses: Vec::new(),
            at: now,
        }
    };
    let stop = |reason| vec![Notice::Stop { address: "Bob@Example.NET".to_owned(), reason }];
    let (bounce, complaint) = (SuppressionReason::Bounce, SuppressionReason::Complaint);
    for (body, wanted) in [
        (
            format!(r#"{{"recipient":"{id}","type":"hard"}}"#),
            vec![receipt(Status::Failed, Some("bounce"), Some(bounce))],
        ),
        (
            format!(r#"{{"recipient":"{id}","type":"soft"}}"#),
            vec![receipt(Status::Failed, Some("soft_bounce"), None)],
        ),
        (
            format!(r#"{{"recipient":"{id}","type":"complaint"}}"#),
            vec![receipt(Status::Delivered, None, Some(complaint))],
        ),
        (
            // The row of the recipient may be gone with its campaign.
            format!(r#"{{"recipient":"{id}","email":"Bob@Example.NET","type":"hard"}}"#),
            [vec![receipt(Status::Failed, Some("bounce"), Some(bounce))], stop(bounce)].concat(),
        ),
        (
            format!(r#"{{"recipient":"{id}","email":"Bob@Example.NET","type":"soft"}}"#),
            vec![receipt(Status::Failed, Some("soft_bounce"), None)],
        ),
        (r#"{"email":"Bob@Example.NET","type":"hard"}"#.to_owned(), stop(bounce)),
        (r#"{"email":"Bob@Example.NET","type":"complaint"}"#.to_owned(), stop(complaint)),
        (r#"{"email":"Bob@example.net","type":"soft"}"#.to_owned(), vec![]),
    ] {
        assert_eq!(told(&[secret], &body), Ok(wanted), "{body}");
        assert_eq!(
            told(&["whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"], &body),
            Err(Refused::WrongSignature)
        );
        assert_eq!(told(&[], &body), Err(Refused::NotOffered));
    }
    for body in ["{}", r#"{"type":"hard"}"#, r#"{"email":"a@b.example","type":"odd"}"#] {
        assert!(matches!(told(&[secret], body), Err(Refused::Malformed(_))), "{body}");
    }
}

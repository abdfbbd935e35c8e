//! Servers of the account's owner, mails, bounces, and servers on raw sockets that say what no library would.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::HeaderMap;
use stampede_model::campaign::SuppressionReason;
use stampede_model::{RecipientId, Timestamp};
use stampede_outbound::signature;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

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
        assert_eq!(refused.as_str(), "never", "{address}");
    }
}

#[test]
fn a_domain_with_other_letters_is_written_in_ascii() {
    let of = |address: &str| {
        let message = Message { address: address.to_owned(), ..mail_message() };
        let mail = mail::Mail::of(&settings("a@b.example"), &message).unwrap();
        (mail.to.to_string(), mail.needs_utf8)
    };
    assert_eq!(of("bob@пример.рф"), ("bob@xn--e1afmkfd.xn--p1ai".to_owned(), false));
    assert_eq!(of("боб@example.com"), ("боб@example.com".to_owned(), true));
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
            suppress,
            at: now,
        }
    };
    let stop = |reason| vec![Notice::Stop { address: "Bob@example.net".to_owned(), reason }];
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
        (r#"{"email":"Bob@Example.NET","type":"hard"}"#.to_owned(), stop(bounce)),
        (r#"{"email":"Bob@example.net","type":"complaint"}"#.to_owned(), stop(complaint)),
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

/// A server that says what the script has: `> text` is sent, `< prefix` is a line that must come, `.` is a mail's content.
async fn scripted(script: &'static [&'static str]) -> (u16, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let played = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut heard = Vec::new();
        for step in script {
            match step.split_at(1) {
                (">", text) => {
                    if stream
                        .write_all(text.trim_start().replace('|', "\r\n").as_bytes())
                        .await
                        .is_err()
                    {
                        break;
                    }
                }
                _ => match line(&mut stream).await {
                    Some(line) => heard.push(line),
                    None => break,
                },
            }
        }
        // What the client still says, until it hangs up.
        while let Some(line) = line(&mut stream).await {
            heard.push(line);
        }
        heard
    });
    (port, played)
}

async fn line(stream: &mut TcpStream) -> Option<String> {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8_lossy(&line).trim_end().to_owned())
}

fn sender(url: &str) -> Sender {
    let settings = Settings { url: url.parse().unwrap(), ..settings("ann@example.com") };
    let credentials = Credentials { user: None, password: None, bounce_secret: Vec::new() };
    let short = Duration::from_millis(500);
    let limits = Limits { connect: Duration::from_secs(2), command: short, dot: short };
    let dialer = Dialer::new("127.0.0.1".parse().unwrap());
    Sender::new(settings, credentials, Arc::new(dialer), limits)
}

async fn played(tls: &str, script: &'static [&'static str]) -> (Outcome, Vec<String>) {
    let (port, server) = scripted(script).await;
    let sender = sender(&format!("smtp://127.0.0.1:{port}{tls}"));
    let outcome = sender.send(&mail_message()).await;
    drop(sender);
    (outcome, server.await.unwrap())
}

#[tokio::test]
async fn silence_is_not_sent_before_the_dot_and_unknown_after_it() {
    const HELLO: &str = "> 250 hello|";
    for (script, wanted) in [
        (&[][..], "not_sent"),
        (&["> 220 x|"], "not_sent"),
        (&["> 220 x|", "<", HELLO, "<"], "not_sent"),
        (&["> 220 x|", "<", HELLO, "<", "> 250 ok|", "<"], "not_sent"),
        (&["> 220 x|", "<", HELLO, "<", "> 250 ok|", "<", "> 250 ok|", "<"], "not_sent"),
        (
            &["> 220 x|", "<", HELLO, "<", "> 250 ok|", "<", "> 250 ok|", "<", "> 354 go|"],
            "unknown",
        ),
    ] {
        let (outcome, _) = played("?tls=none", script).await;
        assert_eq!(outcome.as_str(), wanted, "{script:?} {outcome:?}");
    }
}

#[tokio::test]
async fn greetings_that_ask_for_patience_or_refuse_are_understood() {
    for (script, wanted) in [
        (&["> 421 4.3.2 busy|"][..], "slow_down"),
        (&["> 450 4.7.1 too many connections|"], "slow_down"),
        (&["> 554 5.7.1 go away|"], "account"),
        (&["> HTTP/1.1 400 Bad Request|"], "not_sent"),
        (
            &["> 220 x|", "<", "> 250-a|250 b|", "<", "> 250 ok|", "<", "> 421 4.7.0 bye|"],
            "slow_down",
        ),
        (
            &[
                "> 220 x|",
                "<",
                "> 250 a|",
                "<",
                "> 250 ok|",
                "<",
                "> 250 ok|",
                "<",
                "> 354 go|",
                "<",
                "> nonsense|",
            ],
            "unknown",
        ),
    ] {
        let (outcome, _) = played("?tls=none", script).await;
        assert_eq!(outcome.as_str(), wanted, "{script:?} {outcome:?}");
    }
}

#[tokio::test]
async fn without_starttls_no_mail_is_sent() {
    let (outcome, heard) = played("", &["> 220 x|", "<", "> 250-x|250 AUTH PLAIN|"]).await;
    assert_eq!(outcome.as_str(), "account");
    assert_eq!(heard, ["EHLO example.com"], "nothing but the greeting is said in the clear");
    let (outcome, heard) =
        played("", &["> 220 x|", "<", "> 250 STARTTLS|", "<", "> 454 4.7.0 not now|"]).await;
    assert_eq!(outcome.as_str(), "slow_down");
    assert_eq!(heard, ["EHLO example.com", "STARTTLS"]);
}

#[tokio::test]
async fn replies_that_came_before_tls_are_not_believed_after_it() {
    // Somebody on the way adds answers behind 220, in the clear.
    let script =
        &["> 220 x|", "<", "> 250 STARTTLS|", "<", "> 220 go|250 ok|250 ok|354 go|250 sent|"];
    let (outcome, _) = played("", script).await;
    match outcome {
        Outcome::NotSent(failure) => assert_eq!(failure.code, "tls"),
        other => panic!("{other:?}"),
    }
}

//! Mail, against aiosmtpd; what arrived is read by Python's `email`.

use std::path::Path;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::json;
use stampede_channel::{Account, Attachment, Message};
use stampede_model::campaign::{Channel, Outcome};
use stampede_testkit::{MailServer, temp_dir};

use crate::{account, channels, message, word};

const NOWHERE: &str = "http://127.0.0.1:1999";

fn mail_account(url: &str, credentials: &serde_json::Value) -> Account {
    let settings =
        json!({ "url": url, "from": "Änn Bee <ann@example.com>", "replyTo": "re@example.com" });
    account(Channel::Smtp, &settings, credentials)
}

fn plain(server: &MailServer) -> Account {
    mail_account(&format!("smtp://127.0.0.1:{}?tls=none", server.port()), &json!(null))
}

#[tokio::test]
async fn a_mail_server_refuses_in_every_way() {
    let server = MailServer::start().await;
    let (channels, account) = (channels(NOWHERE, NOWHERE), plain(&server));
    for (who, wanted, code) in [
        ("greylist", "temporary", "451 4.7.1"),
        ("later", "temporary", "450 4.2.1"),
        ("nobody", "bounced bounce", "550 5.1.1"),
        ("full", "never", "552 5.2.2"),
        ("busy", "slow_down 60", "421 4.3.2"),
        ("spam", "refused", "554 5.7.1"),
        ("unsigned", "account", "550 5.7.26"),
        ("disabled", "bounced bounce", "550 5.2.1"),
        ("mute", "not_sent", "connection"),
        ("gone", "not_sent", "connection"),
        ("before", "not_sent", "connection"),
        ("cut", "unknown", "no_answer"),
        ("silent", "unknown", "no_answer"),
        ("fine", "sent", ""),
    ] {
        let mut message = message(&format!("{who}@example.net"));
        if who == "before" {
            // A small mail is written, with its dot, before anybody can know that the server has gone.
            message.text =
                "A line of seventy letters, so that nothing has to be encoded or folded.\n"
                    .repeat(120_000);
        }
        let outcome = channels.send(&account, &message).await;
        assert_eq!(word(&outcome), wanted, "{who} {outcome:?}");
        if let Some(failure) = outcome.failure() {
            assert_eq!(failure.code, code, "{who}");
            let after = failure.after.map(|pause| pause.as_secs());
            assert_eq!(after, (who == "greylist").then_some(310));
        }
    }
    // Those of which nobody knows have arrived; those that were not sent have not.
    let arrived: Vec<_> = server.mails().into_iter().map(|mail| mail.to[0].clone()).collect();
    assert_eq!(arrived, ["cut@example.net", "silent@example.net", "fine@example.net"]);
}

#[tokio::test]
async fn a_mail_arrives_as_it_was_meant() {
    let server = MailServer::start().await;
    let evil = "Subject\r\nBcc: victim@example.org";
    let ticket = Attachment {
        name: "Ticket für Ann.pdf".to_owned(),
        content_type: "application/pdf".to_owned(),
        bytes: Bytes::from_static(b"%PDF-1.7\n.\n..\nbytes\x00\xff"),
    };
    let message = Message {
        subject: Some(format!("Grüße, Привет 🎟 {evil}")),
        text: "Hello Ann\n.\n..dots\nПривет\n".to_owned(),
        html: Some("<p>Hello <b>Änn</b></p>".to_owned()),
        attachments: vec![ticket.clone()],
        unsubscribe_url: Some(format!("https://me.example/u/{}", "x".repeat(300))),
        ..message("bob@example.net")
    };
    let outcome = channels(NOWHERE, NOWHERE).send(&plain(&server), &message).await;
    let id = format!("<{}@example.com>", message.recipient);
    assert_eq!(outcome, Outcome::Sent { provider_id: Some(id.clone()), moved_to: None });
    let mails = server.mails();
    let [mail] = &mails[..] else { panic!("{mails:?}") };
    assert_eq!(
        (mail.from.as_str(), &mail.to[..]),
        ("ann@example.com", &["bob@example.net".to_owned()][..])
    );
    assert_eq!(mail.defects, Vec::<String>::new());
    let unsubscribe = format!("<{}>", message.unsubscribe_url.as_deref().unwrap());
    for (name, wanted) in [
        ("From", "Änn Bee <ann@example.com>"),
        ("To", "bob@example.net"),
        ("Reply-To", "re@example.com"),
        ("Subject", "Grüße, Привет 🎟 Subject  Bcc: victim@example.org"),
        ("Message-ID", &id),
        ("Precedence", "bulk"),
        ("List-Unsubscribe", &unsubscribe),
        ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
    ] {
        assert_eq!(mail.header(name), [wanted], "{name}");
    }
    assert_eq!(mail.header("Date").len(), 1);
    assert!(mail.header("Bcc").is_empty());
    let kinds: Vec<_> = mail.parts.iter().map(|part| part.kind.as_str()).collect();
    assert_eq!(kinds, ["text/plain", "text/html", "application/pdf"]);
    assert_eq!(
        mail.parts[0].text.as_deref().unwrap().replace("\r\n", "\n").trim_end(),
        message.text.trim_end()
    );
    assert_eq!(mail.parts[1].text.as_deref().unwrap().trim_end(), "<p>Hello <b>Änn</b></p>");
    assert_eq!(mail.parts[2].name.as_deref(), Some("Ticket für Ann.pdf"));
    assert_eq!(STANDARD.decode(&mail.parts[2].bytes).unwrap(), ticket.bytes);
}

#[tokio::test]
async fn a_text_that_is_attached_arrives_byte_for_byte() {
    let server = MailServer::start().await;
    // As it is, its second line would end the mail.
    let bytes = Bytes::from_static(b"a\n.\n..\nMAIL FROM:<x@y.example>\r\n.\r\nb");
    let (name, content_type) = ("seats.txt".to_owned(), "text/plain".to_owned());
    let attachments = vec![Attachment { name, content_type, bytes: bytes.clone() }];
    let message = Message { attachments, ..message("bob@example.net") };
    let outcome = channels(NOWHERE, NOWHERE).send(&plain(&server), &message).await;
    assert_eq!(word(&outcome), "sent");
    let mails = server.mails();
    let [mail] = &mails[..] else { panic!("{mails:?}") };
    assert_eq!(STANDARD.decode(&mail.parts[1].bytes).unwrap(), bytes);
    assert_eq!(mail.defects, Vec::<String>::new());
}

#[tokio::test]
async fn a_sender_whose_letters_a_server_does_not_take_is_the_accounts_fault() {
    let server = MailServer::start().await;
    let channels = channels(NOWHERE, NOWHERE);
    let sender = |id: &str, from: &str| {
        let url = format!("smtp://127.0.0.1:{}?tls=none", server.port());
        let settings = json!({ "url": url, "from": from });
        Account { id: id.parse().unwrap(), ..account(Channel::Smtp, &settings, &json!(null)) }
    };
    // The domain has another way to be written, which all servers take.
    let domain = sender("domain", "Зоя <info@пример.рф>");
    assert!(channels.check(&domain).await.is_ok());
    let outcome = channels.send(&domain, &message("bob@example.net")).await;
    assert_eq!(word(&outcome), "sent", "{outcome:?}");
    let mails = server.mails();
    assert_eq!(mails[0].from, "info@xn--e1afmkfd.xn--p1ai");
    assert_eq!(mails[0].header("From"), ["Зоя <info@xn--e1afmkfd.xn--p1ai>"]);
    let user = sender("user", "зоя@example.com");
    assert_eq!(channels.check(&user).await.unwrap_err().code, "settings");
    let outcome = channels.send(&user, &message("bob@example.net")).await;
    let code = outcome.failure().unwrap().code.as_str();
    assert_eq!((word(&outcome).as_str(), code), ("account", "settings"));
    // One recipient's letters are no reason to stop the others.
    let outcome = channels.send(&domain, &message("зоя@example.com")).await;
    let code = outcome.failure().unwrap().code.as_str();
    assert_eq!((word(&outcome).as_str(), code), ("never", "invalid_address"));
    assert_eq!(word(&channels.send(&domain, &message("ann@example.net")).await), "sent");
}

#[tokio::test]
async fn connections_are_used_again_and_are_four_at_most() {
    let server = MailServer::start().await;
    let (channels, account) = (channels(NOWHERE, NOWHERE), plain(&server));
    for who in ["a", "nobody", "b", "spam", "c"] {
        channels.send(&account, &message(&format!("{who}@example.net"))).await;
    }
    let mut ports: Vec<_> = server.mails().iter().map(|mail| mail.connection).collect();
    ports.dedup();
    assert_eq!(ports.len(), 1, "a refused mail leaves the connection as it was");
    let all = (0..40).map(|n| {
        let (channels, account) = (channels.clone(), account.clone());
        tokio::spawn(async move {
            channels.send(&account, &message(&format!("m{n}@example.net"))).await
        })
    });
    for one in all.collect::<Vec<_>>() {
        assert_eq!(word(&one.await.unwrap()), "sent");
    }
    let mails = server.mails();
    assert_eq!(mails.len(), 43);
    let mut ports: Vec<_> = mails.iter().map(|mail| mail.connection).collect();
    ports.sort_unstable();
    ports.dedup();
    assert!(ports.len() <= 4, "{ports:?}");
    let checked = channels.check(&account).await.unwrap();
    assert_eq!(checked.text, "the server mail.test, without a login");
}

#[tokio::test]
async fn a_server_inside_is_not_reached_and_a_missing_one_gets_nothing() {
    let channels = channels(NOWHERE, NOWHERE);
    let inside = mail_account("smtp://127.0.0.2:2525?tls=none", &json!(null));
    let outcome = channels.send(&inside, &message("a@example.net")).await;
    assert_eq!(
        (word(&outcome).as_str(), outcome.failure().unwrap().code.as_str()),
        ("account", "address")
    );
    let mut missing = mail_account("smtp://127.0.0.1:1999?tls=none", &json!(null));
    missing.id = "missing".parse().unwrap();
    let outcome = channels.send(&missing, &message("a@example.net")).await;
    assert_eq!(
        (word(&outcome).as_str(), outcome.failure().unwrap().code.as_str()),
        ("not_sent", "connect")
    );
}

/// A certificate for 127.0.0.1 and its key.
fn certificate(folder: &Path) -> (String, String) {
    let path = |name: &str| folder.join(name).display().to_string();
    let (cert, key) = (path("cert.pem"), path("key.pem"));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
        ])
        .args(["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", &key, "-out", &cert])
        .output();
    let made = made.unwrap_or_else(|error| panic!("run: apt-get install openssl ({error})"));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    (cert, key)
}

/// The server's certificate is trusted by `SSL_CERT_FILE`, which a process reads: so this test runs itself again.
#[tokio::test]
async fn a_password_and_a_mail_travel_over_tls() {
    const TRUSTED: &str = "STAMPEDE_TEST_TRUSTED_KEY";
    if let (Ok(key), Ok(cert)) = (std::env::var(TRUSTED), std::env::var("SSL_CERT_FILE")) {
        return over_tls(&cert, &key).await;
    }
    let folder = temp_dir();
    let (cert, key) = certificate(folder.path());
    let again = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "mail::a_password_and_a_mail_travel_over_tls", "--nocapture"])
        .env("SSL_CERT_FILE", &cert)
        .env(TRUSTED, &key)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&again.stdout).into_owned()
        + &String::from_utf8_lossy(&again.stderr);
    assert!(again.status.success() && said.contains("1 passed"), "{said}");
}

async fn over_tls(cert: &str, key: &str) {
    let login = ["--user", "ann", "--password", "sesame open", "--cert", cert, "--key", key];
    let credentials = json!({ "user": "ann", "password": "sesame open" });
    let wrong = json!({ "user": "ann", "password": "hunter2-wrong" });
    for (scheme, more) in [("smtp", &[][..]), ("smtps", &["--from-the-first-byte"])] {
        let server = MailServer::with(&[&login, more].concat()).await;
        let channels = channels(NOWHERE, NOWHERE);
        let url = format!("{scheme}://127.0.0.1:{}", server.port());
        let account = mail_account(&url, &credentials);
        assert_eq!(
            word(&channels.send(&account, &message("bob@example.net")).await),
            "sent",
            "{scheme}"
        );
        assert!(server.mails()[0].secure);
        assert!(channels.check(&account).await.unwrap().text.contains("knows the user"));
        let mut refused = mail_account(&url, &wrong);
        refused.id = "refused".parse().unwrap();
        let outcome = channels.send(&refused, &message("bob@example.net")).await;
        let failure = outcome.failure().unwrap();
        assert_eq!((word(&outcome).as_str(), failure.code.as_str()), ("account", "535 5.7.8"));
        assert!(!failure.text.contains("hunter2"), "{}", failure.text);
        assert_eq!(server.mails().len(), 1);
    }
}

#[tokio::test]
async fn a_certificate_that_nobody_trusts_gets_no_mail() {
    let folder = temp_dir();
    let (cert, key) = certificate(folder.path());
    for (scheme, more) in [("smtp", &[][..]), ("smtps", &["--from-the-first-byte"])] {
        let server = MailServer::with(&[&["--cert", &cert, "--key", &key], more].concat()).await;
        let url = format!("{scheme}://127.0.0.1:{}", server.port());
        let account = mail_account(&url, &json!(null));
        let outcome = channels(NOWHERE, NOWHERE).send(&account, &message("bob@example.net")).await;
        assert_eq!(
            (word(&outcome).as_str(), outcome.failure().unwrap().code.as_str()),
            ("not_sent", "tls")
        );
        assert!(server.mails().is_empty());
    }
}

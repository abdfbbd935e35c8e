//! Servers on raw sockets that say what no library would.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// A server that says what the script has: `> text` is sent, in Latin-1; `<` is a line that comes, `.` a mail's content, and `*`
/// is a reply without an end.
async fn scripted(script: &'static [&'static str]) -> (u16, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let played = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut heard = Vec::new();
        for step in script {
            match step.split_at(1) {
                (">", text) => {
                    let text = text.trim_start().replace('|', "\r\n");
                    let bytes: Vec<u8> = text.chars().map(|letter| letter as u8).collect();
                    if stream.write_all(&bytes).await.is_err() {
                        break;
                    }
                }
                ("*", _) => while stream.write_all(&[b'2'; 4_096]).await.is_ok() {},
                (".", _) => while line(&mut stream).await.is_some_and(|line| line != ".") {},
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

fn sender(url: &str, patience: Duration) -> Sender {
    let settings = Settings { url: url.parse().unwrap(), ..settings("ann@example.com") };
    let credentials = Credentials { user: None, password: None, bounce_secret: Vec::new() };
    let limits = Limits { connect: Duration::from_secs(2), command: patience, dot: patience };
    let dialer = Dialer::new("127.0.0.1".parse().unwrap());
    Sender::new(settings, credentials, Arc::new(dialer), limits)
}

async fn played(tls: &str, script: &'static [&'static str]) -> (Outcome, Vec<String>) {
    played_within(Duration::from_millis(500), tls, script).await
}

async fn played_within(
    patience: Duration,
    tls: &str,
    script: &'static [&'static str],
) -> (Outcome, Vec<String>) {
    let (port, server) = scripted(script).await;
    let sender = sender(&format!("smtp://127.0.0.1:{port}{tls}"), patience);
    let outcome = sender.send(&mail_message(), &mut stampede_outbound::AtOnce).await;
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

/// Long enough for every reply that comes.
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn replies_in_other_encodings_are_understood() {
    // windows-1251: "пользователь не найден", "принято", "спам".
    for (script, wanted, code) in [
        (
            &[
                "> 220 x|",
                "<",
                "> 250 x|",
                "<",
                "> 250 ok|",
                "<",
                "> 550 5.1.1 ïîëüçîâàòåëü íå íàéäåí|",
            ][..],
            "bounced",
            "550 5.1.1",
        ),
        (
            &[
                "> 220 ïðèâåò|",
                "<",
                "> 250-ÿ|250 x|",
                "<",
                "> 250 äà|",
                "<",
                "> 250 äà|",
                "<",
                "> 354 äà|",
                ".",
                "> 250 2.0.0 ïðèíÿòî|",
            ],
            "sent",
            "",
        ),
        (
            &[
                "> 220 x|",
                "<",
                "> 250 x|",
                "<",
                "> 250 ok|",
                "<",
                "> 250 ok|",
                "<",
                "> 354 go|",
                ".",
                "> 554 5.7.1 ñïàì|",
            ],
            "refused",
            "554 5.7.1",
        ),
    ] {
        let (outcome, _) = played_within(PATIENCE, "?tls=none", script).await;
        assert_eq!(outcome.as_str(), wanted, "{script:?} {outcome:?}");
        assert_eq!(outcome.failure().map_or("", |failure| &failure.code), code, "{outcome:?}");
    }
}

#[tokio::test]
async fn a_reply_without_an_end_is_not_read_to_its_end() {
    for (script, wanted) in [
        (&["*"][..], "not_sent"),
        (&["> 220 x|", "<", "> 250 x|", "<", "*"], "not_sent"),
        (
            &[
                "> 220 x|",
                "<",
                "> 250 x|",
                "<",
                "> 250 ok|",
                "<",
                "> 250 ok|",
                "<",
                "> 354 go|",
                ".",
                "*",
            ],
            "unknown",
        ),
    ] {
        let (outcome, _) = played_within(PATIENCE, "?tls=none", script).await;
        assert_eq!(outcome.as_str(), wanted, "{script:?} {outcome:?}");
        let text = &outcome.failure().unwrap().text;
        assert!(text.contains("the reply is too long"), "{text}");
    }
}

#[tokio::test]
async fn a_reply_that_fits_no_step_is_no_success() {
    for (script, wanted, code) in [
        (&["> 220 x|", "<", "> 250 x|", "<", "> 354 go|"][..], "not_sent", "354"),
        (&["> 220 x|", "<", "> 250 x|", "<", "> 250 ok|", "<", "> 354 go|"], "not_sent", "354"),
        (
            &["> 220 x|", "<", "> 250 x|", "<", "> 250 ok|", "<", "> 250 ok|", "<", "> 250 ok|"],
            "not_sent",
            "250",
        ),
        (
            &[
                "> 220 x|",
                "<",
                "> 250 x|",
                "<",
                "> 250 ok|",
                "<",
                "> 250 ok|",
                "<",
                "> 354 go|",
                ".",
                "> 354 go on|",
            ],
            "unknown",
            "354",
        ),
    ] {
        let (outcome, heard) = played_within(PATIENCE, "?tls=none", script).await;
        assert_eq!(outcome.as_str(), wanted, "{script:?} {outcome:?}");
        assert_eq!(outcome.failure().unwrap().code, code);
        // Nothing follows on this connection, least of all the mail's lines as commands.
        let said = ["EHLO", "MAIL", "RCPT", "DATA"];
        let is_command = |line: &String| said.iter().any(|command| line.starts_with(command));
        assert!(heard.iter().all(is_command), "{heard:?}");
    }
}

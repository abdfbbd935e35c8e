//! A mail server whose connections take long: limits hold for the moment at which a mail leaves.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use stampede_model::campaign::Channel;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::stage::{Stage, campaign, limited, rows};

/// How long a new connection waits for its greeting.
const GREETING: Duration = Duration::from_millis(1_200);
/// A mail that is held up on its way arrives closer to those after it than it has left.
const HELD_UP: Duration = Duration::from_millis(200);

type Times = Arc<Mutex<Vec<Instant>>>;

/// A mail server that notes when each mail begins.
async fn mail_server() -> (u16, Times) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let times = Times::default();
    let noted = times.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let noted = noted.clone();
            tokio::spawn(async move { drop(serve(stream, &noted).await) });
        }
    });
    (port, times)
}

async fn serve(stream: TcpStream, noted: &Times) -> std::io::Result<()> {
    tokio::time::sleep(GREETING).await;
    let mut stream = BufReader::new(stream);
    stream.write_all(b"220 slow.example\r\n").await?;
    let (mut line, mut is_content) = (String::new(), false);
    loop {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let reply = match line.trim_end() {
            "." if is_content => {
                is_content = false;
                "250 2.0.0 taken"
            }
            _ if is_content => continue,
            "DATA" => {
                is_content = true;
                "354 go on"
            }
            other => {
                if other.starts_with("MAIL FROM") {
                    noted.lock().unwrap().push(Instant::now());
                }
                "250 2.0.0 fine"
            }
        };
        stream.write_all(format!("{reply}\r\n").as_bytes()).await?;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_that_waited_for_its_connection_counts_from_when_it_leaves() {
    let stage = Stage::start().await;
    let (port, times) = mail_server().await;
    let url = format!("smtp://127.0.0.1:{port}?tls=none");
    let settings = json!({ "url": url, "from": "ann@example.com" });
    let per = Duration::from_secs(2);
    let account = stage.account_of(Channel::Smtp, settings, json!({}), limited(3, 2_000)).await;
    let mut mails = rows(8);
    for (number, mail) in mails.iter_mut().enumerate() {
        mail.address = format!("person-{number}@example.net");
    }
    let id = stage.campaign_with(campaign(&account), mails).await;
    let _worker = stage.work();
    stage.started(id).await;
    assert_eq!(stage.completed(id).await.counts.sent, 8);
    let times = times.lock().unwrap().clone();
    for window in times.windows(4) {
        let took = window[3] - window[0];
        assert!(took + HELD_UP >= per, "{took:?}");
    }
}

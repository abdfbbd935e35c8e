//! Many connections at once, and a server that is killed in between.

use std::time::Duration;

use serde_json::{Value, json};
use stampede_testkit::eventually;

use super::{Hall, redeem};

/// Connections that redeem the same ticket at the same time.
const CROWD: usize = 50;

/// How many tickets are tried; `STAMPEDE_REDEEM_TICKETS=1000` tries more.
fn tickets() -> usize {
    let given = std::env::var("STAMPEDE_REDEEM_TICKETS").ok();
    given.and_then(|number| number.parse().ok()).unwrap_or(20)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_fifty_connections_with_one_ticket_exactly_one_is_let_in_on_sqlite() {
    crowd(Hall::open(tickets()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_fifty_connections_with_one_ticket_exactly_one_is_let_in_on_postgres() {
    crowd(Hall::open_on_postgres(tickets()).await).await;
}

async fn crowd(hall: Hall) {
    let (device, _) = hall.device("Phone").await;
    // Each has connections of its own.
    let clients: Vec<_> = (0..CROWD).map(|_| device.separate()).collect();
    for token in &hall.tokens {
        let mut scans = tokio::task::JoinSet::new();
        for (number, client) in clients.iter().enumerate() {
            let (client, token) = (client.clone(), token.clone());
            scans.spawn(async move { redeem(&client, &token, &nonce(&token, number)).await });
        }
        let mut let_in = Vec::new();
        while let Some(answer) = scans.join_next().await {
            let answer = answer.unwrap();
            match answer["result"].as_str() {
                Some("ok") => let_in.push(answer),
                Some("already_redeemed") => {
                    assert!(answer["previous"]["scan"].is_string(), "{answer}");
                }
                _ => panic!("{answer}"),
            }
        }
        assert_eq!(let_in.len(), 1, "{let_in:?}");
    }
    let statistics = hall.statistics().await;
    let sold = hall.tokens.len();
    assert_eq!(statistics["entries"], sold, "{statistics}");
    assert_eq!(statistics["inside"], sold);
    assert_eq!(statistics["refused"], sold * (CROWD - 1));
}

/// A nonce of its own for each connection and ticket.
fn nonce(token: &str, number: usize) -> String {
    format!("{number}-{}", &token[token.len() - 20..])
}

/// The server hangs between commit and answer of a scan.
const HANGING: [(&str, &str); 1] = [("STAMPEDE_HANG_AT", "scan-committed")];

#[tokio::test]
async fn a_server_killed_between_commit_and_answer_gives_the_same_answer_to_the_same_nonce() {
    killed_before_the_answer(Hall::open_with(1, &HANGING, None).await).await;
}

#[tokio::test]
async fn a_server_killed_between_commit_and_answer_gives_the_same_answer_on_postgres() {
    let postgres = stampede_testkit::Postgres::start().await;
    let url = postgres.url();
    let settings = [HANGING[0], ("DATABASE_URL", url.as_str())];
    let hall = Hall::open_with(1, &settings, Some(&url)).await.keep(postgres);
    killed_before_the_answer(hall).await;
}

async fn killed_before_the_answer(mut hall: Hall) {
    let (device, _) = hall.device("Phone").await;
    let body = json!({ "token": hall.tokens[0], "nonce": "n1" });
    let (client, sent) = (device.clone(), body.clone());
    let request = tokio::spawn(async move {
        client.request(reqwest::Method::POST, "/api/checkin/redeem").json(&sent).send().await
    });
    let committed: Value = eventually(Duration::from_secs(30), || async {
        match hall.log().await.as_slice() {
            [scan] => Ok(scan.clone()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    hall.app.kill();
    assert!(request.await.unwrap().is_err(), "the answer never arrived");
    hall.app.start_again(&[("STAMPEDE_HANG_AT", "")]).await;

    let answer = super::scan(&device, body).await;
    assert_eq!((&answer["result"], &answer["replayed"]), (&json!("ok"), &json!(true)), "{answer}");
    assert_eq!(answer["scan"], committed["id"]);
    assert_eq!(hall.log().await.len(), 1);
    let second = redeem(&device, &hall.tokens[0], "n2").await;
    assert_eq!(second["result"], "already_redeemed");
}

//! The link to unsubscribe: a page with a button, one click of mail programs, for ever.

use reqwest::Method;
use serde_json::json;
use stampede_testkit::{Receiver, send};

use super::{completed, organiser, text, verb};
use crate::start;

#[tokio::test]
async fn a_link_shows_a_page_first_and_unsubscribes_by_its_button_once() {
    let receiver = Receiver::start().await;
    let settings = [
        ("WEBHOOK_ALLOW_PRIVATE", "127.0.0.1"),
        ("PUBLIC_URL", "https://news.example.org"),
        ("WORKER_COUNT", "1"),
    ];
    let app = start(&settings).await;
    let ann = organiser(&app, "ann");
    let account = json!({
        "id": "hook", "name": "News & More", "channel": "webhook", "settings": { "url": receiver.url("/send") },
        "credentials": { "secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD" },
    });
    ann.post("/api/accounts", &account).await.expect(201);
    let body = json!({
        "accountId": "hook", "name": "N", "recipients": [{ "phoneNumber": "+4915100000001" }],
        "content": { "text": "Bye: {{ unsubscribeUrl }}" },
    });
    let made = ann.post("/api/contracts", &body).await.expect(201);
    let path = format!("/api/contracts/{}", text(&made["id"]));
    verb(&ann, &path, "start").await.expect(200);
    completed(&ann, &path).await;
    let message = text(&receiver.has(1).await[0].json()["message"]["text"]);
    let link = message.strip_prefix("Bye: https://news.example.org").unwrap().to_owned();
    assert!(link.starts_with("/u/"), "{link}");

    let stranger = app.stranger();
    let list = "/api/suppressions?account=hook";
    // Mail scanners open links.
    for _ in 0..2 {
        let page = stranger.get(&link).await;
        assert_eq!(page.status, 200);
        let html = String::from_utf8(page.bytes).unwrap();
        assert!(
            html.contains("<form method=\"post\">") && html.contains("+4915100000001"),
            "{html}"
        );
        assert!(html.contains("News &amp; More") && !html.contains("<script"), "{html}");
        let policy = page.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(page.headers["referrer-policy"], "no-referrer");
        assert_eq!(ann.get(list).await.expect(200)["suppressions"], json!([]));
    }
    // RFC 8058, 3.2: what mail programs send.
    for _ in 0..2 {
        let request = stranger.request(Method::POST, &link);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let done = send(request.body("List-Unsubscribe=One-Click")).await;
        assert_eq!(done.status, 200);
        assert!(String::from_utf8(done.bytes).unwrap().contains("You are unsubscribed"));
    }
    let suppressed = ann.get(list).await.expect(200);
    assert_eq!(suppressed["suppressions"].as_array().unwrap().len(), 1, "twice is once");
    assert_eq!(suppressed["suppressions"][0]["reason"], "stop", "{suppressed}");
    let page = String::from_utf8(stranger.get(&link).await.bytes).unwrap();
    assert!(page.contains("You are unsubscribed"), "{page}");
    // One letter of the token is another one.
    let mut forged = link.clone();
    let last = forged.pop().unwrap();
    forged.push(if last == 'A' { 'B' } else { 'A' });
    let middle = link.len() / 2;
    let changed = if link.as_bytes()[middle] == b'A' { "B" } else { "A" };
    let other = format!("{}{changed}{}", &link[..middle], &link[middle + 1..]);
    for wrong in ["/u/x", other.as_str()] {
        assert_eq!(stranger.get(wrong).await.status, 404, "{wrong}");
        assert_eq!(send(stranger.request(Method::POST, wrong)).await.status, 404, "{wrong}");
    }
    // The next campaign of the account leaves the address out.
    let again = ann.post("/api/contracts", &body).await.expect(201);
    assert_eq!(again["recipients"]["suppressed"], 1, "{again}");
}

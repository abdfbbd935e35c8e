//! The QR code of a ticket alone: it says what the PDF says, and scanners read it.

use std::path::Path;
use std::process::Command;

use serde_json::json;
use stampede_model::Token;
use stampede_testkit::temp_dir;

use crate::access::client;
use crate::{create_event, key_ring, start, text};

/// What `zbarimg` reads in a picture.
fn scanned(picture: &Path) -> String {
    let output = Command::new("zbarimg").args(["-q", "--raw"]).arg(picture).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A drawing of dark rectangles as pixels, four for each module.
fn drawn(svg: &str) -> Vec<u8> {
    let between = |text: &str, from: &str, to: &str| -> String {
        text.split(from).nth(1).unwrap().split(to).next().unwrap().to_owned()
    };
    let side: usize = between(svg, "viewBox=\"0 0 ", " ").parse().unwrap();
    let mut pixels = vec![255; side * side * 16];
    let path = svg.rsplit("d=\"").next().unwrap().split('"').next().unwrap();
    for run in path.split('M').skip(1) {
        let (place, rest) = run.split_once('h').unwrap();
        let (x, y) = place.split_once(' ').unwrap();
        let (x, y): (usize, usize) = (x.parse().unwrap(), y.parse().unwrap());
        let width: usize = rest.split('v').next().unwrap().parse().unwrap();
        for row in y * 4..(y + 1) * 4 {
            pixels[row * side * 4 + x * 4..row * side * 4 + (x + width) * 4].fill(0);
        }
    }
    [format!("P5\n{} {}\n255\n", side * 4, side * 4).into_bytes(), pixels].concat()
}

#[tokio::test]
async fn a_code_alone_scans_in_every_size_until_the_ticket_is_void() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let ticket = text(&app.order(json!({ "target": event, "name": "Ann" })).await["tickets"][0]);
    let (keys, folder) = (key_ring(&app, &event).await, temp_dir());
    let path = |end: &str| format!("/api/tickets/{ticket}/{end}");
    for query in [
        "qr.png",
        "qr.png?size=120",
        "qr.png?size=1000&margin=10",
        "qr.svg",
        "qr.svg?size=300&margin=2",
    ] {
        let answer = app.admin().get(&path(query)).await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.body);
        let file =
            folder.path().join(if query.starts_with("qr.svg") { "code.pgm" } else { "code.png" });
        if query.starts_with("qr.svg") {
            assert_eq!(answer.headers["content-type"], "image/svg+xml");
            std::fs::write(&file, drawn(std::str::from_utf8(&answer.bytes).unwrap())).unwrap();
        } else {
            assert_eq!(answer.headers["content-type"], "image/png");
            std::fs::write(&file, &answer.bytes).unwrap();
        }
        let claims = scanned(&file).parse::<Token>().unwrap().verify(&keys).unwrap();
        assert_eq!((claims.serial, claims.generation), (1, 1), "{query}");
        let tag = answer.headers["etag"].clone();
        let request =
            app.admin().request(reqwest::Method::GET, &path(query)).header("If-None-Match", tag);
        assert_eq!(stampede_testkit::send(request).await.status, 304);
    }
    for query in ["qr.png?size=5", "qr.png?size=100000", "qr.svg?margin=-1", "qr.svg?margni=1"] {
        app.admin().get(&path(query)).await.expect(400);
    }
    client(&app, "organiser", "bob").get(&path("qr.svg")).await.expect(403);
    app.admin()
        .patch(&format!("/api/tickets/{ticket}"), &json!({ "status": "void" }))
        .await
        .expect(200);
    for end in ["qr.svg", "qr.png"] {
        assert_eq!(app.admin().get(&path(end)).await.expect(410)["code"], "gone");
    }
}

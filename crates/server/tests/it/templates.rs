//! Templates of organisers: kept, tried out, used by events, and stopped when they run wild.

use serde_json::{Value, json};
use stampede_testkit::{App, Client, pdf_is_sound, pdf_pages, pdf_text, send};

use crate::access::client;
use crate::{batch_ended, start, text};

/// A template whose tickets say a word, and whose they are.
fn saying(word: &str) -> Value {
    let source = format!(
        "#set page(width: 120mm, height: 80mm, margin: 10mm)\n\
         {word} of #event.name\n\n#field(\"name\")\n\n#qr(40mm)\n"
    );
    json!({ "template.typ": source })
}

async fn created(client: &Client, word: &str) -> Value {
    let body = json!({ "name": word, "files": saying(word), "note": "first" });
    client.post("/api/templates", &body).await.expect(201)
}

async fn event_with(client: &Client, template: &Value) -> String {
    let body = json!({ "name": "Opening Night", "template": template });
    text(&client.post("/api/events", &body).await.expect(201)["id"])
}

/// What the ticket of a new order for the event says.
async fn printed(app: &App, event: &str) -> String {
    let order = app.order(json!({ "target": event, "name": "Ann Example" })).await;
    batch_ended(app, &text(&order["batchId"])).await;
    pdf_of(app, &text(&order["tickets"][0])).await
}

async fn pdf_of(app: &App, ticket: &str) -> String {
    let answer = app.admin().get(&format!("/api/tickets/{ticket}/pdf")).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    pdf_is_sound(&answer.bytes);
    pdf_text(&answer.bytes)
}

#[tokio::test]
async fn a_template_is_kept_with_all_its_revisions() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let ann = client(&app, "organiser", "ann");
    let made = created(&ann, "Blue").await;
    assert_eq!((&made["revision"], &made["mode"]), (&json!(1), &json!("stamped")), "{made}");
    assert_eq!(made["pages"], json!([{ "widthMm": 120.0, "heightMm": 80.0 }]));
    assert_eq!(made["fields"], json!(["code", "name"]));
    let path = format!("/api/templates/{}", text(&made["id"]));

    let same = ann.put(&path, &json!({ "files": saying("Blue") })).await.expect(200);
    assert_eq!(same["revision"], 1, "the same files are the same revision");
    let changed = json!({ "files": saying("Red"), "name": "Red one", "note": "warmer" });
    assert_eq!(ann.put(&path, &changed).await.expect(200)["revision"], 2);
    let read = ann.get(&path).await;
    assert_eq!(read.headers["etag"], "\"2\"");
    let read = read.expect(200);
    assert_eq!((&read["name"], &read["note"]), (&json!("Red one"), &json!("warmer")));
    assert_eq!(read["files"], saying("Red"));

    let listed = ann.get(&format!("{path}/revisions")).await.expect(200);
    let numbers: Vec<&Value> =
        listed["revisions"].as_array().unwrap().iter().map(|found| &found["revision"]).collect();
    assert_eq!(numbers, [&json!(2), &json!(1)]);
    let first = ann.get(&format!("{path}/revisions/1")).await.expect(200);
    assert_eq!((&first["files"], &first["author"]), (&saying("Blue"), &json!("ann")));
    ann.get(&format!("{path}/revisions/3")).await.expect(404);

    let stale = ann.request(reqwest::Method::PUT, &path).header("If-Match", "\"1\"");
    let refused = send(stale.json(&json!({ "files": saying("Green") }))).await.expect(412);
    assert!(text(&refused["error"]).contains("at version \"2\""), "{refused}");
    let fresh = ann.request(reqwest::Method::PUT, &path).header("If-Match", "\"2\"");
    send(fresh.json(&json!({ "files": saying("Green") }))).await.expect(200);
    // Another name is another version, too, though the revision is the same.
    let renamed = ann.put(&path, &json!({ "name": "Green one" })).await;
    let tag = renamed.headers["etag"].to_str().unwrap().to_owned();
    assert_eq!(renamed.expect(200)["revision"], 3);
    assert_ne!(tag, "\"3\"");
    assert_eq!(ann.get(&path).await.headers["etag"], tag.as_str());
    let of = |method, tag: &str| ann.request(method, &path).header("If-Match", tag);
    let other = json!({ "name": "Other" });
    send(of(reqwest::Method::PUT, "\"3\"").json(&other)).await.expect(412);
    send(of(reqwest::Method::DELETE, "\"3\"")).await.expect(412);
    send(of(reqwest::Method::PUT, &tag).json(&other)).await.expect(200);

    ann.delete(&path).await.expect(204);
    ann.get(&path).await.expect(404);
}

#[tokio::test]
async fn what_does_not_compile_is_not_kept_and_says_where() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let admin = app.admin();
    let broken = json!({ "template.typ": "Fine\n\n  #field(\"nmae\")\n" });
    let refused =
        admin.post("/api/templates", &json!({ "name": "x", "files": broken })).await.expect(422);
    let diagnostic = &refused["diagnostics"][0];
    assert_eq!(
        (&diagnostic["file"], &diagnostic["line"], &diagnostic["severity"]),
        (&json!("template.typ"), &json!(3), &json!("error")),
        "{refused}"
    );
    assert!(diagnostic["column"].is_u64() && !text(&diagnostic["message"]).is_empty());
    assert!(!diagnostic["hints"].as_array().unwrap().is_empty(), "{refused}");
    admin.post("/api/templates/validate", &json!({ "files": broken })).await.expect(422);
    let valid = admin.post("/api/templates/validate", &json!({ "files": saying("x") })).await;
    assert_eq!(valid.expect(200)["valid"], true);

    let path = format!("/api/templates/{}", text(&created(&admin, "Blue").await["id"]));
    admin.put(&path, &json!({ "files": broken })).await.expect(422);
    let kept = admin.get(&path).await.expect(200);
    assert_eq!((&kept["revision"], &kept["files"]), (&json!(1), &saying("Blue")));
}

#[tokio::test]
async fn files_that_cannot_be_a_template_are_refused() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let large = "x".repeat(9 << 20);
    for files in [
        json!({}),
        json!({ "other.typ": "x" }),
        json!({ "template.typ": 7 }),
        json!({ "template.typ": "x", "logo.png": { "base64": "***" } }),
        json!({ "template.typ": "x", "../../etc/passwd": "x" }),
        json!({ "template.typ": "x", "large.txt": large }),
        json!({ "template.typ": "#read(\"/etc/passwd\")" }),
        json!({ "template.typ": "#import \"@preview/cades:0.3.0\": *" }),
        json!({ "template.typ": "#image(\"logo.png\")", "logo.png": { "base64": "AAAA" } }),
        json!(["template.typ"]),
    ] {
        let shown: String = files.to_string().chars().take(100).collect();
        let body = json!({ "name": "x", "files": files });
        let answer = app.admin().post("/api/templates", &body).await;
        assert_eq!(answer.status, 422, "{shown}: {}", answer.body);
        assert_eq!(answer.headers["content-type"], "application/problem+json");
    }
    let huge = "x".repeat(17 << 20);
    let answer = app.admin().post("/api/templates", &json!({ "name": huge })).await;
    answer.expect(413);
    let none = app.admin().get("/api/templates").await.expect(200);
    assert_eq!(none["templates"], json!([]));
}

#[tokio::test]
async fn nobody_reaches_the_templates_of_others() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let (ann, bob) = (client(&app, "organiser", "ann"), client(&app, "organiser", "bob"));
    let viewer = client(&app, "viewer", "ann");
    let id = text(&created(&ann, "Blue").await["id"]);
    let path = format!("/api/templates/{id}");
    for answer in [
        bob.get(&path).await,
        bob.get(&format!("{path}/revisions")).await,
        bob.get(&format!("{path}/revisions/1")).await,
        bob.put(&path, &json!({ "files": saying("Red") })).await,
        bob.post(&format!("{path}/preview"), &json!({})).await,
        bob.delete(&path).await,
        viewer.delete(&path).await,
        viewer.put(&path, &json!({ "files": saying("Red") })).await,
        viewer.post("/api/templates", &json!({ "name": "x", "files": saying("x") })).await,
    ] {
        answer.expect(403);
    }
    viewer.get(&path).await.expect(200);
    assert_eq!(bob.get("/api/templates").await.expect(200)["templates"], json!([]));
    let listed = app.admin().get("/api/templates").await.expect(200);
    assert_eq!(listed["templates"][0]["id"], json!(id));
    let foreign = json!({ "name": "Bob's", "template": id });
    let refused = bob.post("/api/events", &foreign).await.expect(422);
    assert_eq!(refused["errors"][0]["field"], "template");
}

#[tokio::test]
async fn an_event_is_printed_with_the_template_it_chose() {
    let app = start(&[]).await;
    let ann = client(&app, "organiser", "ann");
    let template = text(&created(&ann, "Blue").await["id"]);
    let latest = event_with(&ann, &json!(template)).await;
    let pinned = event_with(&ann, &json!({ "id": template, "revision": 1 })).await;
    let blue = printed(&app, &latest).await;
    assert!(blue.contains("Blue of Opening Night") && blue.contains("Ann Example"), "{blue}");
    let shown = ann.get(&format!("/api/events/{latest}")).await.expect(200);
    assert_eq!(shown["template"], json!({ "id": template, "revision": "latest" }));

    let path = format!("/api/templates/{template}");
    ann.put(&path, &json!({ "files": saying("Red") })).await.expect(200);
    assert!(printed(&app, &latest).await.contains("Red of"), "the latest is followed");
    assert!(printed(&app, &pinned).await.contains("Blue of"), "a pinned revision stays");
    // A ticket that was made before says what the template says now, when somebody asks for it.
    let old = ann.get(&format!("/api/tickets?target={latest}")).await.expect(200);
    let old = text(&old["tickets"][0]["id"]);
    assert!(pdf_of(&app, &old).await.contains("Red of"));

    let refused = ann.delete(&path).await.expect(409);
    assert!(text(&refused["error"]).contains(&latest), "{refused}");
    for (event, template) in [(&latest, json!("stub")), (&pinned, Value::Null)] {
        let change = json!({ "template": template });
        ann.patch(&format!("/api/events/{event}"), &change).await.expect(200);
    }
    assert!(!printed(&app, &latest).await.contains("Red of"));
    ann.delete(&path).await.expect(204);
    for wrong in [json!("nothing"), json!(7), json!({ "id": "a4", "revision": 1 }), json!({})] {
        let change = json!({ "template": wrong });
        ann.patch(&format!("/api/events/{latest}"), &change).await.expect(422);
    }
}

#[tokio::test]
async fn the_designs_that_ship_are_listed_and_read_only() {
    let app = start(&[]).await;
    let admin = app.admin();
    let listed = admin.get("/api/templates").await.expect(200);
    let names: Vec<String> =
        listed["designs"].as_array().unwrap().iter().map(|design| text(&design["id"])).collect();
    assert_eq!(names, ["a4", "stub", "badge"]);
    for name in names {
        let path = format!("/api/templates/{name}");
        let design = admin.get(&path).await.expect(200);
        assert!(text(&design["files"]["template.typ"]).contains("#"), "{design}");
        admin.put(&path, &json!({ "files": saying("x") })).await.expect(405);
        admin.delete(&path).await.expect(405);
        let event = event_with(&admin, &json!(name)).await;
        let text = printed(&app, &event).await;
        assert!(text.contains("Ann Example"), "{name}: {text}");
        let copy = json!({ "name": "Mine", "design": name });
        assert_eq!(admin.post("/api/templates", &copy).await.expect(201)["mode"], "stamped");
    }
}

#[tokio::test]
async fn a_preview_shows_files_that_are_not_kept() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let admin = app.admin();
    let body = json!({
        "files": saying("Draft"),
        "event": { "name": "Nacht der Museen" },
        "ticket": { "name": "Иван Петров", "seat": null },
    });
    let pdf = admin.post("/api/templates/preview", &body).await;
    assert_eq!(pdf.headers["content-type"], "application/pdf");
    pdf_is_sound(&pdf.bytes);
    let printed = pdf_text(&pdf.bytes);
    assert!(printed.contains("Draft of Nacht der Museen") && printed.contains("Иван Петров"));
    assert_eq!(pdf_pages(&pdf.bytes), 1);
    let png = admin.post("/api/templates/preview?format=png&dpi=72", &body).await;
    assert_eq!((png.status, &png.headers["content-type"]), (200, &"image/png".parse().unwrap()));
    assert!(png.bytes.starts_with(b"\x89PNG"), "{}", png.body);
    // Width and height of the picture: 120 × 80 mm at 72 dots per inch.
    let side = |at: usize| u32::from_be_bytes(png.bytes[at..at + 4].try_into().unwrap());
    assert!(side(16).abs_diff(340) <= 1 && side(20).abs_diff(227) <= 1, "{}", side(16));

    let id = text(&created(&admin, "Kept").await["id"]);
    let path = format!("/api/templates/{id}/preview");
    let kept = admin.post(&path, &json!({})).await;
    assert!(pdf_text(&kept.bytes).contains("Kept of Sample Night"));
    let draft = admin.post(&path, &json!({ "files": saying("Other") })).await;
    assert!(pdf_text(&draft.bytes).contains("Other of"));
    for (path, body, status) in [
        (path.clone(), json!({ "revision": 9 }), 404),
        (path.clone(), json!({ "ticket": { "name": "" } }), 422),
        (path.clone(), json!({ "event": { "startsAt": "soon" } }), 422),
        (format!("{path}?format=gif"), json!({}), 400),
        (format!("{path}?format=png&dpi=9999"), json!({}), 400),
        (format!("{path}?format=png&page=0"), json!({}), 400),
        ("/api/templates/nothing/preview".to_owned(), json!({}), 404),
        ("/api/templates/preview".to_owned(), json!({}), 422),
    ] {
        admin.post(&path, &body).await.expect(status);
    }
    assert_eq!(admin.get(&format!("/api/templates/{id}")).await.expect(200)["revision"], 1);
}

#[tokio::test]
async fn a_template_that_runs_wild_is_stopped_while_others_are_printed() {
    let app = start(&[]).await;
    let good = event_with(&app.admin(), &json!("a4")).await;
    let (eve, mallory) = (client(&app, "organiser", "eve"), client(&app, "organiser", "mallory"));
    let many = "range(9999)";
    let loops = format!("#for a in {many} {{ for b in {many} {{ for c in {many} {{ }} }} }}");
    let eats = "#let a = \"x\" * 1000000\n#for i in range(20) { a = a + a }\n#a.len()";
    let [loops, eats] =
        [loops.as_str(), eats].map(|source| json!({ "files": { "template.typ": source } }));
    // One of these organisers goes on and on; everybody else must not notice.
    let validate = |_| eve.post("/api/templates/validate", &loops);
    let mut crowd = Box::pin(futures::future::join_all((0..5).map(validate)));
    let others = async {
        let eaten = mallory.post("/api/templates/validate", &eats).await;
        let word = created(&app.admin(), "Meanwhile").await;
        let event = event_with(&app.admin(), &word["id"]).await;
        let ordered = std::time::Instant::now();
        let first = printed(&app, &good).await;
        let waited = ordered.elapsed();
        println!("an order took {waited:?} beside templates that run wild");
        // Whoever waits for one of them waits ten seconds.
        assert!(waited < std::time::Duration::from_secs(8), "{waited:?}");
        (eaten, first, printed(&app, &event).await)
    };
    let (eaten, first, second) = tokio::select! {
        _ = &mut crowd => panic!("five loops of ten seconds ended first"),
        done = others => done,
    };
    assert!(first.contains("Ann Example") && second.contains("Meanwhile of"));
    let eaten = eaten.expect(422);
    let message = text(&eaten["diagnostics"][0]["message"]);
    // Beside the loops it may be too slow to get at all the memory that it may have.
    assert!(message.contains("memory") || message.contains("longer than"), "{message}");
    let looped = eve.post("/api/templates/validate", &loops);
    drop(crowd);
    let looped = looped.await;
    // Ten seconds of processor time: on a busy machine the request ends first.
    let message = match looped.status {
        503 => text(&looped.body["detail"]),
        _ => text(&looped.expect(422)["diagnostics"][0]["message"]),
    };
    assert!(message.contains("longer than"), "{message}");
    app.admin().get("/ready").await.expect(200);
}

#[tokio::test]
async fn a_template_that_looks_at_its_ticket_is_typeset_with_the_same_result() {
    let app = start(&[]).await;
    let source = "#set page(width: 120mm, height: 80mm)\n\
                  #if ticket(\"seat\") != none [Seat: #ticket(\"seat\")] else [Free seating]\n\n\
                  #field(\"name\")\n\n#qr(40mm)";
    let body = json!({ "name": "Slow", "files": { "template.typ": source } });
    let made = app.admin().post("/api/templates", &body).await.expect(201);
    assert_eq!(made["mode"], "typeset", "{made}");
    assert!(text(&made["reason"]).contains("template.typ"), "{made}");
    let event = event_with(&app.admin(), &made["id"]).await;
    let holders = json!([{ "name": "Ann", "seat": "A-1" }, { "name": "Bob" }]);
    let order = app.order(json!({ "target": event, "holders": holders })).await;
    batch_ended(&app, &text(&order["batchId"])).await;
    let first = pdf_of(&app, &text(&order["tickets"][0])).await;
    let second = pdf_of(&app, &text(&order["tickets"][1])).await;
    assert!(first.contains("Seat: A-1") && second.contains("Free seating"), "{first} {second}");
    let merged = app.admin().get(&format!("/api/batches/{}/pdf", text(&order["batchId"]))).await;
    pdf_is_sound(&merged.bytes);
    let merged = pdf_text(&merged.bytes);
    assert!(merged.contains("Seat: A-1") && merged.contains("Free seating"), "{merged}");
}

#[tokio::test]
async fn an_event_has_a_language_that_its_tickets_speak() {
    let app = start(&[]).await;
    let admin = app.admin();
    let event = json!({ "name": "Opening", "startsAt": "2026-11-21T18:30:00Z",
        "timeZone": "Europe/Vienna", "lang": "de-at" });
    let made = admin.post("/api/events", &event).await.expect(201);
    assert_eq!(made["lang"], "de-AT");
    let path = format!("/api/events/{}", text(&made["id"]));
    assert_eq!(admin.get(&path).await.expect(200)["lang"], "de-AT");
    let order = app.order(json!({ "target": made["id"], "name": "Ann Example" })).await;
    batch_ended(&app, &text(&order["batchId"])).await;
    let ticket = text(&order["tickets"][0]);
    let said = pdf_of(&app, &ticket).await;
    assert!(said.contains("EINTRITTSKARTE"), "{said}");
    assert!(said.contains("Samstag, 21. November 2026, 19:30 Uhr"), "{said}");

    assert_eq!(admin.patch(&path, &json!({ "lang": null })).await.expect(200)["lang"], json!(null));
    let said = pdf_of(&app, &ticket).await;
    assert!(said.contains("ENTRY TICKET") && said.contains("Saturday, 21 November"), "{said}");

    for wrong in [json!("deutsch"), json!("de_AT"), json!(5), json!("de-AT\") #panic()")] {
        let refused = admin.patch(&path, &json!({ "lang": wrong })).await.expect(422);
        assert_eq!(refused["errors"][0]["field"], "lang", "{refused}");
    }
}

#[tokio::test]
async fn the_processes_that_run_templates_hold_nothing_of_the_server() {
    let app = start(&[]).await;
    created(&app.admin(), "Blue").await;
    let inherited = descriptors(std::process::id());
    let sandboxes: Vec<u32> = children(app.pid())
        .into_iter()
        .filter(|pid| {
            let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&command).contains("template-sandbox")
        })
        .collect();
    assert!(!sandboxes.is_empty(), "nothing ran the template");
    // The server has its database, its journal, its log and its sockets open.
    let own = descriptors(app.pid());
    assert!(own.iter().any(|file| file.starts_with("socket:")), "{own:?}");
    assert!(own.iter().any(|file| file.starts_with('/')), "{own:?}");
    for pid in sandboxes {
        let open = descriptors(pid);
        let strange: Vec<&String> = open
            .iter()
            .filter(|file| !inherited.contains(file) && !file.starts_with("pipe:"))
            .collect();
        assert!(strange.is_empty(), "{strange:?}");
    }
}

/// What a process has open.
fn descriptors(pid: u32) -> Vec<String> {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    open.filter_map(|entry| {
        Some(std::fs::read_link(entry.ok()?.path()).ok()?.display().to_string())
    })
    .collect()
}

/// The processes that a process started.
fn children(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for thread in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten() {
        let list = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        found.extend(list.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    found
}

//! Every route × every role × owner and stranger. The routes come from the router's own table; what each caller may do
//! follows from the right of the route and from whose record it is about.

use reqwest::Method;
use serde_json::{Value, json};
use stampede_api::{Right, Route};
use stampede_model::Signer;
use stampede_testkit::{Answer, App, Client, send};

use crate::access::client;
use crate::{start, text};

/// A caller: a role, and whose records it is about.
struct Caller {
    name: &'static str,
    client: Client,
    /// May read records of the owner.
    reads: bool,
    /// May change records of the owner.
    changes: bool,
    /// May create records of its own.
    writes: bool,
    /// May stand at a door, at least at that of its own events.
    admits: bool,
    /// May let guests in at events of the owner.
    admits_guests: bool,
    /// May read everything, also what belongs to nobody.
    oversees: bool,
    is_admin: bool,
    has_key: bool,
}

fn callers(app: &App) -> Vec<Caller> {
    let caller = |name, client, reads, changes, writes| Caller {
        name,
        client,
        reads,
        changes,
        writes,
        admits: writes,
        admits_guests: changes,
        oversees: false,
        is_admin: false,
        has_key: true,
    };
    let of = |role: &str, user: &str| client(app, role, user);
    let nobody = caller("nobody", app.stranger(), false, false, false);
    let scanner = caller("scanner of the owner", of("scanner", "ann"), false, false, false);
    let foreign_scanner =
        caller("scanner of a stranger", of("scanner", "bob"), false, false, false);
    let everybodys = caller("viewer of everybody", of("viewer", "*"), true, false, false);
    let admin = caller("admin", of("admin", "root"), true, true, true);
    vec![
        Caller { has_key: false, ..nobody },
        caller("viewer of the owner", of("viewer", "ann"), true, false, false),
        caller("viewer of a stranger", of("viewer", "bob"), false, false, false),
        Caller { oversees: true, ..everybodys },
        Caller { admits: true, admits_guests: true, ..scanner },
        Caller { admits: true, ..foreign_scanner },
        caller("organiser, the owner", of("organiser", "ann"), true, true, true),
        caller("organiser, a stranger", of("organiser", "bob"), false, false, true),
        Caller { oversees: true, is_admin: true, ..admin },
    ]
}

/// Whether a route answers with a stream, which has no end by itself.
pub(crate) fn is_stream(route: &Route) -> bool {
    ["/api/events/stream", "/api/batches/{id}/events"].contains(&route.path)
}

/// Whose a route's records are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// A record of an owner, named by the path or the body.
    Record,
    /// The caller's own records, or none.
    Own,
    /// Something that belongs to nobody.
    System,
}

/// The subject of a route. A route of a new kind fails the test until it is listed here.
fn subject(route: &Route) -> Subject {
    let records =
        ["/api/events/{id}", "/api/tickets/{id}", "/api/batches/{id}", "/api/templates/{id}"];
    let doors = ["/api/lists/{id}", "/api/gates/{id}", "/api/devices/{id}"];
    let keys = ["/api/keys/{id}", "/api/keys/{id}/rotate"];
    let scans = ["/api/checkin/redeem", "/api/checkin/scans", "/api/checkin/bundle"];
    let own =
        ["/api/events", "/api/templates", "/api/templates/validate", "/api/templates/preview"];
    let system = [
        "/api/queues",
        "/api/limits",
        "/api/breakers",
        "/api/suspects",
        "/api/nodes",
        "/api/audit",
    ];
    let open = [
        "/api/cluster",
        "/api/scaling",
        "/health",
        "/ready",
        "/api/openapi.json",
        "/api/docs",
        "/api/links",
        "/hooks/",
        "/u/",
    ];
    let campaigns = ["/api/contracts/{id}", "/api/accounts/{id}"];
    match (route.method.as_str(), route.path) {
        ("POST", "/api/tickets") | ("POST", "/api/verify") => Subject::Record,
        ("GET", "/api/tickets" | "/api/batches" | "/api/events/stream" | "/metrics") => {
            Subject::Own
        }
        ("GET", "/ws") => Subject::System,
        (_, path) if records.iter().any(|room| path.starts_with(room)) => Subject::Record,
        (_, path) if doors.contains(&path) || scans.contains(&path) => Subject::Record,
        (_, "/api/checkin/me" | "/api/checkin/undo") => Subject::Own,
        (_, "/api/checkin/enrol") => Subject::System,
        (_, path) if keys.contains(&path) => Subject::Record,
        (_, path) if path.starts_with("/api/webhooks/{id}") => Subject::Record,
        (_, path) if campaigns.iter().any(|room| path.starts_with(room)) => Subject::Record,
        // Without an address, nothing is looked up.
        (_, "/api/contracts" | "/api/accounts" | "/api/suppressions") => Subject::Own,
        (_, "/api/keys" | "/api/webhooks") => Subject::Own,
        // A sticker is nobody's: who knows its name knows its text.
        (_, path) if path.starts_with("/api/stickers") => Subject::Own,
        (_, path) if own.contains(&path) => Subject::Own,
        (_, path) if system.iter().chain(&open).any(|room| path.starts_with(room)) => {
            Subject::System
        }
        _ => panic!("say in this function whose the records of {route:?} are"),
    }
}

/// Whether strangers are not told that the record of a route exists (docs/decisions/0034-foreign-records.md).
fn is_hidden(route: &Route) -> bool {
    let hidden = ["/api/lists/{id}", "/api/gates/{id}", "/api/devices/{id}", "/api/keys/{id}"];
    let whole = ["/api/webhooks/{id}", "/api/contracts/{id}", "/api/accounts/{id}"];
    whole.iter().any(|room| route.path.starts_with(room))
        || hidden.iter().any(|room| route.path.starts_with(room))
        || route.path == "/api/tickets/{id}/block"
}

/// Why a caller is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// It has no key.
    NoKey,
    /// Its role may not call the route, whatever record it names.
    WrongRole,
    /// The record is somebody else's.
    Foreign,
    /// The record is somebody else's, and its existence is not told.
    Hidden,
}

/// What refuses the caller; `None`: the caller gets in.
fn refusal(caller: &Caller, route: &Route) -> Option<Refusal> {
    let (has_role, reaches_record) = match route.right {
        Right::Nothing => return None,
        _ if !caller.has_key => return Some(Refusal::NoKey),
        // A scanner opens doors only.
        Right::Call => (caller.writes || !caller.admits, caller.reads),
        // A preview reads a template, and writes nothing of its owner.
        Right::Write if route.path.ends_with("/preview") => (caller.writes, caller.reads),
        Right::Write => (caller.writes, caller.changes),
        Right::Admit => (caller.admits, caller.admits_guests),
        Right::Watch => (caller.has_key, true),
        Right::Oversee => (caller.oversees, true),
        Right::Administer => (caller.is_admin, true),
    };
    match subject(route) == Subject::Record && !reaches_record {
        _ if !has_role => Some(Refusal::WrongRole),
        true if is_hidden(route) => Some(Refusal::Hidden),
        true => Some(Refusal::Foreign),
        false => None,
    }
}

/// Records of the owner.
#[derive(Debug, Clone)]
pub(crate) struct Records {
    pub(crate) event: String,
    pub(crate) ticket: String,
    pub(crate) batch: String,
    template: String,
    token: String,
    gate: String,
    device: String,
    key: String,
    webhook: String,
    delivery: String,
    contract: String,
    recipient: String,
    account: String,
}

/// A token of the event that nobody signed: only those who may read the event are told so.
fn forged(event: &str) -> String {
    Signer::new(event.parse().unwrap(), 1, &[7; 32]).sign(1, 1).to_string()
}

impl Records {
    pub(crate) async fn new(owner: &Client, template: &str) -> Self {
        let event = owner.post("/api/events", &json!({ "name": "Night" })).await.expect(201);
        let event = text(&event["id"]);
        let order = json!({ "target": event, "name": "Guest" });
        let order = owner.post("/api/tickets", &order).await.expect(200);
        let ticket = text(&order["tickets"][0]);
        let own = |what: &str| format!("/api/events/{event}/{what}");
        let name = json!({ "name": "North" });
        let gate = owner.post(&own("gates"), &name).await.expect(201);
        let device = owner.post(&own("devices"), &name).await.expect(201);
        let key = json!({ "name": format!("Key of {event}"), "role": "viewer" });
        let key = owner.post("/api/keys", &key).await.expect(201);
        Self {
            gate: text(&gate["id"]),
            device: text(&device["device"]["id"]),
            key: text(&key["id"]),
            webhook: String::new(),
            delivery: String::new(),
            contract: String::new(),
            recipient: String::new(),
            account: String::new(),
            token: forged(&event),
            ticket,
            batch: text(&order["batchId"]),
            template: template.to_owned(),
            event,
        }
    }

    /// These records with a webhook of their event. Not every record has one: a user has at most fifty.
    pub(crate) async fn with_webhook(self, owner: &Client) -> Self {
        let webhook = json!({ "url": "https://example.com/hook", "event": self.event });
        let webhook = text(&owner.post("/api/webhooks", &webhook).await.expect(201)["id"]);
        let test = owner.post(&format!("/api/webhooks/{webhook}/test"), &json!({})).await;
        let delivery = text(&test.expect(202)["id"]);
        Self { webhook, delivery, ..self }
    }

    /// These records with a campaign and an account.
    pub(crate) async fn with_campaign(self, owner: &Client) -> Self {
        let account = owner.post("/api/accounts", &json!({ "channel": "console" })).await;
        let recipient = json!({ "phoneNumber": "+4915100000001", "message": "Hello" });
        let contract = json!({ "accountId": "console", "name": "News", "recipients": [recipient] });
        let contract = text(&owner.post("/api/contracts", &contract).await.expect(201)["id"]);
        let rows = owner.get(&format!("/api/contracts/{contract}/recipients")).await.expect(200);
        let recipient = text(&rows["recipients"][0]["id"]);
        Self { contract, recipient, account: text(&account.expect(201)["id"]), ..self }
    }

    /// The route's path with these records.
    fn path(&self, route: &Route) -> String {
        let id = match route.path {
            path if path.starts_with("/api/tickets") => &self.ticket,
            path if path.starts_with("/api/batches") => &self.batch,
            path if path.starts_with("/api/templates") => &self.template,
            path if path.starts_with("/api/gates") => &self.gate,
            path if path.starts_with("/api/devices") => &self.device,
            path if path.starts_with("/api/keys") => &self.key,
            path if path.starts_with("/api/webhooks") => &self.webhook,
            path if path.starts_with("/api/contracts") => &self.contract,
            path if path.starts_with("/api/accounts") => &self.account,
            // The id of an event is that of its built-in list, too.
            _ => &self.event,
        };
        let path = route.path.replace("{id}", id).replace("{name}", "mails");
        let path = path
            .replace("{delivery}", &self.delivery)
            .replace("{recipient}", &self.recipient)
            .replace("{channel}", "webhook")
            .replace("{account}", "nobodys")
            .replace("{kid}", "1")
            .replace("{number}", "1")
            .replace("{token}", "x")
            .replace("{action}", "explode");
        assert!(!path.contains('{'), "give {path} a value for its parameter");
        match path.as_str() {
            "/api/checkin/bundle" => format!("{path}?target={}", self.event),
            // A stream that ends at once.
            _ if is_stream(route) => format!("{path}?seconds=0"),
            _ => path,
        }
    }

    fn body(&self, route: &Route) -> Value {
        match route.path {
            "/api/tickets" => json!({ "target": self.event, "name": "Guest" }),
            "/api/verify" => json!({ "token": self.token }),
            "/api/keys/{id}" => json!({ "name": "Renamed" }),
            "/api/contracts" => json!({ "accountId": "console", "name": "News" }),
            "/api/contracts/{id}" | "/api/accounts/{id}" => json!({ "name": "Renamed" }),
            "/api/contracts/{id}/test" => json!({ "addresses": ["+4915100000001"] }),
            "/api/contracts/{id}/unknown" => json!({ "action": "sent", "all": true }),
            "/api/contracts/{id}/recipients" => json!([]),
            "/api/contracts/{id}/guests" => json!({ "eventId": self.event }),
            "/api/accounts" => json!({ "channel": "console" }),
            "/api/suppressions" => json!({ "addresses": ["+4915100000001"] }),
            "/api/webhooks" => json!({ "url": "https://example.com/" }),
            "/api/webhooks/{id}" => json!({ "description": "Renamed" }),
            "/api/webhooks/{id}/redeliver" => json!({ "since": "2026-01-01T00:00:00Z" }),
            "/api/checkin/redeem" => self.scan(),
            "/api/checkin/scans" => {
                let mut scan = self.scan();
                scan.as_object_mut().unwrap().remove("target");
                scan["at"] = json!("2027-01-01T00:00:00Z");
                scan["verdict"] = json!("void");
                json!({ "deviceNow": scan["at"], "target": self.event, "scans": [scan] })
            }
            "/api/templates/{id}/preview" | "/api/templates/preview" => json!({ "design": "stub" }),
            _ => json!({}),
        }
    }

    fn scan(&self) -> Value {
        json!({ "ticketId": self.ticket, "target": self.event, "nonce": "1" })
    }

    async fn call(&self, caller: &Caller, route: &Route) -> Answer {
        self.call_as(&caller.client, route).await
    }

    pub(crate) async fn call_as(&self, client: &Client, route: &Route) -> Answer {
        let method = Method::from_bytes(route.method.as_str().as_bytes()).unwrap();
        let request = client.request(method, &self.path(route));
        match route.method.as_str() {
            "GET" | "DELETE" => send(request).await,
            _ => send(request.json(&self.body(route))).await,
        }
    }
}

fn check(caller: &Caller, route: &Route, answer: &Answer) {
    let place = format!("{} {} as {}: {}", route.method, route.path, caller.name, answer.body);
    match refusal(caller, route) {
        Some(Refusal::NoKey) => {
            assert_eq!(answer.status, 401, "{place}");
            assert_eq!(answer.body["code"], "unauthorized", "{place}");
        }
        Some(Refusal::Hidden) => {
            assert_eq!(answer.status, 404, "{place}");
            assert_eq!(answer.body["code"], "not_found", "{place}");
            assert!(answer.body["needs"].is_null(), "{place}");
        }
        Some(Refusal::WrongRole | Refusal::Foreign) => {
            assert_eq!(answer.status, 403, "{place}");
            assert_eq!(answer.body["code"], "forbidden", "{place}");
            assert_eq!(answer.body["error"], "Access denied", "{place}");
            let needs = answer.body["needs"].as_array().unwrap_or_else(|| panic!("{place}"));
            assert!(needs.iter().any(|role| role == "admin"), "{place}");
        }
        None => {
            assert!(![401, 403].contains(&answer.status) && answer.status < 500, "{place}");
            let reads_a_record = subject(route) == Subject::Record && route.method == "GET";
            // Its ticket is not blocked.
            let may_be_missing = route.path == "/api/tickets/{id}/block";
            assert!(
                !reads_a_record || may_be_missing || [200, 409].contains(&answer.status),
                "{place}"
            );
        }
    }
}

#[tokio::test]
async fn every_route_lets_in_whom_its_rule_lets_in_and_nobody_else() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let callers = callers(&app);
    let owner = client(&app, "organiser", "ann");
    let template = json!({ "name": "Mine", "design": "stub" });
    let template = text(&owner.post("/api/templates", &template).await.expect(201)["id"]);
    app.admin().post("/api/queues/mails/jobs", &json!({ "name": "send" })).await.expect(200);
    let records = Records::new(&owner, &template).await.with_webhook(&owner).await;
    let records = records.with_campaign(&owner).await;
    let seen = |records: &Records| {
        let paths = [
            format!("/api/events/{}", records.event),
            format!("/api/tickets/{}", records.ticket),
            format!("/api/templates/{}", records.template),
        ];
        let admin = app.admin();
        async move {
            let mut seen = Vec::new();
            for path in paths {
                seen.push(admin.get(&path).await.expect(200));
            }
            seen
        }
    };
    let (before, mut cells) = (seen(&records).await, 0);
    // Those who are refused first: they must have changed nothing.
    for route in &stampede_api::routes() {
        for caller in callers.iter().filter(|caller| refusal(caller, route).is_some()) {
            check(caller, route, &records.call(caller, route).await);
            cells += 1;
        }
    }
    assert_eq!(seen(&records).await, before, "a refused request has changed something");
    for route in &stampede_api::routes() {
        for caller in callers.iter().filter(|caller| refusal(caller, route).is_none()) {
            // What was deleted cannot be deleted again.
            let own = match route.method.as_str() {
                "DELETE" if subject(route) == Subject::Record => {
                    Records::new(&owner, &template).await
                }
                _ => records.clone(),
            };
            let own = match route.method == "DELETE" && route.path == "/api/webhooks/{id}" {
                true => own.with_webhook(&owner).await,
                false => own,
            };
            let gone = ["/api/contracts/{id}", "/api/accounts/{id}"];
            let own = match route.method == "DELETE" && gone.contains(&route.path) {
                true => own.with_campaign(&owner).await,
                false => own,
            };
            let is_template = route.method == "DELETE" && route.path == "/api/templates/{id}";
            let own = if is_template {
                Records { template: new_template(&owner).await, ..own }
            } else {
                own
            };
            check(caller, route, &own.call(caller, route).await);
            cells += 1;
        }
    }
    assert_eq!(cells, callers.len() * stampede_api::routes().len());
}

pub(crate) async fn new_template(owner: &Client) -> String {
    let template = json!({ "name": "Another", "design": "stub" });
    text(&owner.post("/api/templates", &template).await.expect(201)["id"])
}

#[tokio::test]
async fn a_list_shows_a_stranger_nothing() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let owner = client(&app, "organiser", "ann");
    new_template(&owner).await;
    let event = owner.post("/api/events", &json!({ "name": "Night" })).await.expect(201);
    let order = json!({ "target": event["id"], "name": "Guest" });
    owner.post("/api/tickets", &order).await.expect(200);
    for (path, field) in
        [("/api/events", "events"), ("/api/tickets", "tickets"), ("/api/templates", "templates")]
    {
        for (role, user, count) in [
            ("organiser", "ann", 1),
            ("viewer", "ann", 1),
            ("viewer", "*", 1),
            ("organiser", "bob", 0),
            ("viewer", "bob", 0),
        ] {
            let list = client(&app, role, user).get(path).await.expect(200);
            assert_eq!(list[field].as_array().unwrap().len(), count, "{path} as {role} {user}");
        }
        // Who finds a lost phone must not read the lists of guests.
        client(&app, "scanner", "ann").get(path).await.expect(403);
    }
}

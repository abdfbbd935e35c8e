//! Guests of an order: everybody gets the link to their ticket, as the ticket is when the message leaves.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::json;
use stampede_campaign::{Guests, Imported, Purpose};
use stampede_model::campaign::{CampaignState, Channel, Content, RecipientState, Template};
use stampede_model::{BatchId, CampaignId, Event, EventId, Holder, Order, Pdf, Ticket, TicketId};
use stampede_press::sample;
use stampede_store::{Completion, Edited, Failure, Placed, TicketEdit};
use stampede_testkit::Behaviour;
use stampede_wire::campaigns::{Contract, ImportReport};

use crate::stage::{Stage, campaign, fast, now};

/// Orders a ticket for each holder.
async fn order(stage: &Stage, holders: Vec<Holder>) -> (EventId, BatchId, Vec<TicketId>) {
    let event = Event { id: EventId::generate(), owner: "ann".to_owned(), ..sample::event() };
    stage.store.insert_event(&event).await.unwrap();
    let (batch_id, at) = (BatchId::generate(), now());
    let ticket = |(holder, index): (Holder, u32)| Ticket {
        id: TicketId::generate(),
        batch_id,
        owner: "ann".to_owned(),
        index,
        created_at: at,
        updated_at: at,
        ..sample::ticket(&event, holder, None)
    };
    let tickets: Vec<Ticket> = holders.into_iter().zip(1..).map(ticket).collect();
    let ids = tickets.iter().map(|ticket| ticket.id).collect();
    let order = Order {
        batch_id,
        event_id: event.id,
        owner: "ann".to_owned(),
        tickets,
        idempotency: None,
        created_at: at,
    };
    let placed = stage.store.place_order(&order).await.unwrap();
    assert!(matches!(placed, Placed::New(_)), "{placed:?}");
    (event.id, batch_id, ids)
}

async fn complete(stage: &Stage, id: TicketId) {
    let ticket = stage.store.ticket(id).await.unwrap().unwrap();
    let completion = Completion {
        ticket_id: id,
        seen: ticket.updated_at,
        pdf: Pdf::of("f".to_owned(), b"%PDF"),
        worker: "worker".to_owned(),
        at: now(),
    };
    assert_eq!(stage.store.complete_tickets(&[completion]).await.unwrap().changed, [id]);
}

async fn fail(stage: &Stage, id: TicketId) {
    let (reason, worker) = ("no font".to_owned(), "worker".to_owned());
    let failure = Failure { ticket_id: id, reason, worker, at: now() };
    assert_eq!(stage.store.fail_tickets(&[failure]).await.unwrap().changed, [id]);
}

/// Gives a ticket another holder, and makes its PDF.
async fn edit(stage: &Stage, id: TicketId, change: impl FnOnce(&mut Holder)) {
    let ticket = stage.store.ticket(id).await.unwrap().unwrap();
    let mut edit = TicketEdit { holder: ticket.holder, price: ticket.price };
    change(&mut edit.holder);
    let edited = stage.store.edit_ticket(id, &edit, ticket.updated_at, now()).await.unwrap();
    assert!(matches!(edited, Edited::Changed(..)), "{edited:?}");
    complete(stage, id).await;
}

fn holder(name: &str, chat: Option<&str>) -> Holder {
    Holder { name: name.to_owned(), chat: chat.map(str::to_owned), ..Holder::default() }
}

async fn import(stage: &Stage, id: CampaignId, guests: Guests, purpose: Purpose) -> ImportReport {
    match stage.campaigns.import_guests(id, guests, purpose).await.unwrap() {
        Imported::Done(report) => *report,
        other => panic!("{other:?}"),
    }
}

/// The ticket and the generation that the link of a message opens.
fn linked(text: &str) -> (TicketId, u32) {
    let (_, token) = text.split_once("https://tickets.example/api/links/").unwrap();
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).unwrap();
    let id = TicketId::from_bytes(bytes[2..18].try_into().unwrap());
    (id, u32::from_be_bytes(bytes[18..22].try_into().unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_gets_the_link_to_their_ticket_as_it_is_now() {
    let stage = Stage::start().await;
    let sent = json!({ "ok": true, "result": { "message_id": 1 } });
    stage.receiver.behaves(Behaviour::Answers(200, sent.to_string()));
    let token = json!({ "token": "123456789:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" });
    let account = stage.account_of(Channel::Telegram, json!({}), token, fast()).await;
    let holders = [
        ("Ann", Some("1001")),
        ("Bob", None),
        ("Zoe", Some("1003")),
        ("Max", Some("1004")),
        ("Eve", Some("1005")),
        ("Kim", Some("1006")),
        ("Leo", Some("1007")),
        ("Pia", Some("1008")),
    ];
    let holders = holders.map(|(name, chat)| holder(name, chat)).to_vec();
    let (event, batch, ids) = order(&stage, holders).await;
    let [ann, _, zoe, max, eve, kim, leo, pia] = ids[..] else { panic!("{ids:?}") };
    stage.store.void_ticket(zoe, now()).await.unwrap().unwrap();
    let mut new = campaign(&account);
    let text = Some("{{ name }}: {{ ticketUrl }}".to_owned());
    new.content = Content::Template(Template { text, ..Template::default() });
    let id = stage.campaign_with(new, Vec::new()).await;
    let guests = Guests::OfBatch(batch);
    let dry = import(&stage, id, guests, Purpose::DryRun).await;
    assert_eq!(stage.contract(id).await.batch_id, None);
    let report = import(&stage, id, guests, Purpose::Import).await;
    assert_eq!(dry, ImportReport { dry_run: true, ..report.clone() });
    assert_eq!((report.rows, report.added, report.invalid, report.void), (7, 6, 1, 1));
    assert_eq!(report.mistakes[0].message, "ticket 2: its holder has no chat of Telegram");
    let again = import(&stage, id, Guests::OfEvent(event), Purpose::DryRun).await;
    assert_eq!((again.added, again.duplicates, again.invalid), (0, 6, 1), "as an import would");
    let contract = stage.contract(id).await;
    assert_eq!((contract.event_id, contract.batch_id), (Some(event), Some(batch)));

    // After the import.
    stage.store.void_ticket(max, now()).await.unwrap().unwrap();
    edit(&stage, ann, |ann| ann.name = "Anna".to_owned()).await;
    stage.store.reissue_ticket(eve, now()).await.unwrap().unwrap();
    complete(&stage, eve).await;
    fail(&stage, leo).await;
    edit(&stage, pia, |pia| pia.chat = Some("2008".to_owned())).await;
    let _worker = stage.work();
    stage.started(id).await;
    let all_but_kim = |contract: &Contract| {
        (contract.counts.sent, contract.counts.failed, contract.counts.skipped) == (2, 3, 1)
    };
    let so_far = stage.until(id, all_but_kim).await;
    assert_eq!(so_far.status, CampaignState::Running, "a PDF that is being made is waited for");
    complete(&stage, kim).await;
    assert_eq!(stage.completed(id).await.counts.sent, 3);

    let mut codes: Vec<(TicketId, String)> = Vec::new();
    for recipient in stage.ledger(id).await {
        if recipient.state == RecipientState::Failed {
            codes.push((recipient.ticket.unwrap(), recipient.code.unwrap()));
        }
    }
    let wanted = [(max, "ticket_void"), (leo, "ticket_failed"), (pia, "ticket_moved")];
    assert_eq!(codes, wanted.map(|(id, code)| (id, code.to_owned())));
    let mut got: Vec<(String, String)> = Vec::new();
    for request in stage.receiver.received() {
        let (chat, text) = (request.json()["chat_id"].clone(), request.json()["text"].clone());
        got.push((chat.as_str().unwrap().to_owned(), text.as_str().unwrap().to_owned()));
    }
    got.sort();
    assert_eq!(got.len(), 3, "{got:?}");
    for ((chat, text), (to, begins, ticket, generation)) in got.iter().zip([
        ("1001", "Anna: ", ann, 2),
        ("1005", "Eve: ", eve, 2),
        ("1006", "Kim: ", kim, 1),
    ]) {
        assert_eq!((chat.as_str(), linked(text)), (to, (ticket, generation)));
        assert!(text.starts_with(begins), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_without_the_ticket_does_not_depend_on_it() {
    let stage = Stage::start().await;
    let account = stage.account(json!({}), fast()).await;
    let ann = Holder { phone: Some("+79991234567".to_owned()), ..holder("Ann", None) };
    let (event, _, ids) = order(&stage, vec![ann]).await;
    let mut new = campaign(&account);
    let text = Some("{{ name }}, the evening is cancelled".to_owned());
    new.content = Content::Template(Template { text, ..Template::default() });
    let id = stage.campaign_with(new, Vec::new()).await;
    let report = import(&stage, id, Guests::OfEvent(event), Purpose::Import).await;
    assert_eq!(report.added, 1, "a webhook takes any address that the holder has");
    stage.store.void_ticket(ids[0], now()).await.unwrap().unwrap();
    let _worker = stage.work();
    stage.started(id).await;
    assert_eq!(stage.completed(id).await.counts.sent, 1);
    assert_eq!(stage.got()["+79991234567"], 1);
}

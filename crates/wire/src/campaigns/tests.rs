//! Every answer is read and written under the names that clients read.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stampede_model::{BatchId, CampaignId, EventId, RecipientId, TicketId};

use super::*;

const AT: &str = "2027-01-15T08:00:00Z";

/// The JSON is read as an answer and written as it was: no name is missing, and none is added.
fn assert_names<T: Serialize + DeserializeOwned>(json: Value) {
    let read: T = serde_json::from_value(json.clone()).unwrap_or_else(|e| panic!("{e}: {json}"));
    assert_eq!(serde_json::to_value(&read).unwrap(), json);
}

/// A JSON object with more fields.
fn with(mut object: Value, more: Value) -> Value {
    let (Value::Object(all), Value::Object(more)) = (&mut object, more) else {
        panic!("no objects")
    };
    all.extend(more);
    object
}

fn pacing() -> Value {
    json!({
        "limit": { "max": 20, "perMs": 60_000 },
        "spacing": { "minMs": 500, "maxMs": 2_000 },
        "rest": { "every": 100, "forMs": 600_000 },
        "dailyCap": 1_000,
        "warmUp": { "start": 50, "factor": 1.5, "max": 1_000 },
        "quietHours": {
            "from": "21:00:00", "to": "09:00:00", "days": ["friday", "saturday"], "timeZone": "Europe/Berlin",
        },
    })
}

fn counts() -> Value {
    json!({
        "total": 45, "pending": 1, "queued": 2, "sending": 3, "sent": 4, "delivered": 5, "read": 6,
        "failed": 7, "unknown": 8, "skipped": 9,
    })
}

fn contract() -> Value {
    json!({
        "id": CampaignId::from_bytes([1; 16]), "owner": "ann", "accountId": "mail", "channel": "smtp",
        "name": "Doors open", "status": "paused", "statusReason": "10 failures in a row",
        "content": {
            "kind": "template", "subject": "Doors", "text": "Hello", "html": "<p>Hello</p>",
            "whatsappTemplate": "doors", "whatsappLanguage": "en_US", "whatsappValues": ["{{ name }}"],
            "attachTicket": true, "defaults": { "name": "guest" },
        },
        "pacing": pacing(),
        "autoPause": { "inARow": 10, "failedPercent": 10, "bouncedPercent": 5 },
        "maxAttempts": 3, "timeZone": "Europe/Berlin", "country": "DE", "startAt": AT, "endAt": null,
        "eventId": EventId::from_bytes([2; 16]), "batchId": BatchId::from_bytes([3; 16]),
        "counts": counts(), "progress": 86, "importing": false, "etaAt": AT, "createdAt": AT,
        "updatedAt": AT, "startedAt": AT, "endedAt": null,
    })
}

fn report_of_import() -> Value {
    json!({
        "dryRun": true, "rows": 4, "added": 1, "invalid": 1, "duplicates": 1,
        "duplicateRows": [{ "line": 4, "firstLine": 2 }], "suppressed": 1, "void": 0,
        "mistakes": [{ "line": 3, "field": "email", "message": "must be an address" }],
        "mistakesTotal": 1, "problems": ["no recipient has a message"], "encoding": "UTF-8", "delimiter": ";",
        "columns": [{ "title": "Phone", "meaning": "address", "field": null }],
        "first": [{ "line": 2, "address": "+4915100000001", "fields": { "name": "Ann" }, "message": null }],
    })
}

fn recipient() -> Value {
    json!({
        "id": RecipientId::from_bytes([4; 16]), "contractId": CampaignId::from_bytes([1; 16]),
        "position": 7, "address": "+4915100000001", "fields": { "name": "Ann" }, "message": "Hello",
        "timeZone": "Europe/Berlin", "ticketId": TicketId::from_bytes([5; 16]), "line": 8,
        "status": "skipped", "skipReason": "opted_out", "code": "131026", "detail": "no such person",
        "attempts": 2, "nextAt": AT, "providerId": "wamid.x", "updatedAt": AT, "sentAt": AT,
        "deliveredAt": AT, "readAt": null,
    })
}

#[test]
fn accounts_have_the_names_that_clients_read() {
    let account = json!({
        "id": "mail", "owner": "ann", "name": "Mail", "channel": "smtp",
        "settings": { "url": "smtps://mail.example.com" }, "pacing": pacing(), "country": "DE",
        "timeZone": "Europe/Berlin", "blockedReason": "wrong password", "firstSentAt": AT,
        "createdAt": AT, "updatedAt": AT,
    });
    assert_names::<Account>(account.clone());
    let shared = json!({ "owner": null, "pacing": {}, "blockedReason": null, "firstSentAt": null });
    assert_names::<Account>(with(account.clone(), shared));
    assert_names::<AccountPage>(json!({ "accounts": [account], "next": "mail" }));
    assert_names::<AccountCheck>(json!({ "ok": true, "verified": true, "message": "the bot @x" }));
}

#[test]
fn contracts_have_the_names_that_clients_read() {
    assert_names::<Contract>(contract());
    let own = json!({ "content": { "kind": "own" }, "pacing": {}, "channel": null });
    assert_names::<Contract>(with(contract(), own));
    assert_names::<ContractPage>(json!({ "contracts": [contract()], "next": null }));
    assert_names::<PausedContract>(with(contract(), json!({ "inFlight": 3 })));
    assert_names::<SettledRecipients>(json!({ "recipients": 3 }));
}

#[test]
fn a_contract_that_was_made_has_the_names_that_older_software_reads() {
    let id = CampaignId::from_bytes([1; 16]);
    let made = with(contract(), json!({ "success": true, "contractId": id }));
    assert_names::<CreatedContract>(made.clone());
    assert_names::<CreatedContract>(with(made, json!({ "recipients": report_of_import() })));
}

#[test]
fn recipients_have_the_names_that_clients_read() {
    assert_names::<ImportReport>(report_of_import());
    assert_names::<RecipientPage>(json!({ "recipients": [recipient()], "next": 7 }));
    let attempt = json!({
        "number": 1, "at": AT, "tookMs": 12, "outcome": "temporary", "code": "451", "answer": "later",
    });
    assert_names::<RecipientLog>(with(recipient(), json!({ "log": [attempt] })));
    let suppression = json!({
        "owner": "ann", "accountId": "mail", "address": "bob@example.com", "reason": "bounce",
        "since": AT, "by": "smtp",
    });
    let of_all = with(suppression.clone(), json!({ "owner": null, "accountId": null }));
    let page = json!({ "suppressions": [suppression, of_all], "next": "x" });
    assert_names::<SuppressionPage>(page);
    assert_names::<SuppressionsAdded>(json!({ "added": 2 }));
    assert_names::<ReceiptsTaken>(json!({ "applied": 1, "suppressed": 2 }));
    let unsubscription = json!({ "address": "bob@example.com", "sender": "News", "isDone": true });
    assert_names::<Unsubscription>(unsubscription);
}

#[test]
fn what_a_campaign_would_do_has_the_names_that_clients_read() {
    assert_names::<Validation>(json!({
        "ok": false, "toSend": 3, "willFail": 1, "skipped": { "duplicate": 1 }, "problems": ["no recipient"],
        "templateMistakes": [{ "part": "text", "line": 1, "column": 2, "message": "is empty" }],
        "emptyFields": [{ "field": "seat", "recipients": 2, "positions": [1, 2] }],
        "tooLong": { "recipients": 1, "positions": [3], "longest": 5_000, "most": 4_096 },
        "empty": { "recipients": 1, "positions": [4] }, "noMessage": { "recipients": 2, "positions": [5, 6] },
        "segments": { "total": 9, "most": 3, "unicode": 1 }, "etaAt": AT, "lookedAt": 4,
    }));
    assert_names::<Preview>(json!({
        "recipientId": RecipientId::from_bytes([4; 16]), "position": 1, "address": "+4915100000001",
        "subject": "Doors", "text": "Hello", "html": "<p>Hello</p>", "whatsappTemplate": null,
        "whatsappLanguage": null, "whatsappValues": ["Ann"],
        "attachments": ["ticket.pdf"], "emptyFields": ["seat"], "length": 5, "most": 1_600, "segments": 1,
    }));
    assert_names::<TestMessage>(json!({
        "address": "+4915100000001", "outcome": "waiting", "code": "429", "detail": "slow down",
        "providerId": "m1", "waitMs": 1_000,
    }));
}

#[test]
fn the_report_has_the_names_that_clients_read() {
    assert_names::<Report>(json!({
        "contract": contract(),
        "codes": [{ "status": "failed", "code": "131026", "example": "no such person", "recipients": 2 }],
        "minutes": [{ "at": AT, "sent": 20, "failedAttempts": 1, "unknown": 0 }], "stepMs": 60_000,
        "limit": { "max": 20, "perMs": 60_000 }, "leftMs": 120_000,
        "tests": [{
            "address": "+4915100000001", "position": 1, "at": AT, "tookMs": 12, "outcome": "sent", "code": null,
            "answer": null, "providerId": "m1",
        }],
    }));
}

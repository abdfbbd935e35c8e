//! Every route on one page, by room: the right that it demands, its handler, the name of its operation and what it does. The
//! rights are those of `auth.rs`; a line that names another right than the guard in its handler's type does not compile. The
//! rest of the description follows from the handler's type (`describe.rs`).
//!
//! | right | who may call |
//! |---|---|
//! | `Nothing` | everybody |
//! | `Call` | viewers, organisers, administrators; the handler checks whose the record is |
//! | `Write` | organisers, administrators; the handler checks whose the record is |
//! | `Watch` | everybody with a key; the handler shows what the key may see |
//! | `Admit` | scanners, organisers, administrators |
//! | `Oversee` | administrators, viewers of the user `*` |
//! | `Administer` | administrators |

use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use tower_http::catch_panic::CatchPanicLayer;

use crate::app::App;
use crate::problem::{Code, Problem};
use crate::room::{Room, Route, room};
use crate::routes::campaigns::{
    accounts, hooks, recipients, reports as outcomes, suppressions, trial, unsubscribe, verbs,
};
use crate::routes::checkin::{self as door, blocks, devices, reports, setup};
use crate::routes::live as live_routes;
use crate::routes::queues::{dead_letters, jobs, operate, schedules};
use crate::routes::templates::previews;
use crate::routes::webhooks::deliveries;
use crate::routes::{
    api_keys, audit, batch_files, batches, campaigns, codes, description, events, health, limits,
    links, metrics, nodes, orders, pdf, queues, stickers, suspects, templates, ticket_keys, tickets,
    uploads, verify, webhooks,
};
use crate::trace;

/// Events, orders, tickets, batches, verification.
fn ticketing() -> Room {
    room!("Ticketing" {
        POST "/api/events" Write events::create => createEvent "Creates an event";
        GET "/api/events" Call events::list => listEvents "Lists events";
        GET "/api/events/{id}" Call events::read => getEvent "Shows an event";
        PATCH "/api/events/{id}" Write events::update => updateEvent "Changes fields of an event" ! Busy, InvalidTemplate;
        DELETE "/api/events/{id}" Write events::delete => deleteEvent "Deletes an event" ! InUse, Busy;
        GET "/api/events/{id}/keys" Call ticket_keys::list => listTicketKeys "Lists the public keys that prove an event's tickets";
        POST "/api/events/{id}/keys" Write ticket_keys::rotate => rotateTicketKey "Makes a new key, which signs from now on" ! TooMany;
        DELETE "/api/events/{id}/keys/{kid}" Write ticket_keys::revoke => revokeTicketKey "Revokes a key: its tickets are refused";
        POST "/api/tickets" Write orders::create => orderTickets "Orders tickets" ! NotFound, HasWarnings, InvalidTemplate;
        GET "/api/tickets" Call tickets::list => listTickets "Lists tickets";
        GET "/api/tickets/{id}" Call tickets::read => getTicket "Shows a ticket";
        PATCH "/api/tickets/{id}" Write tickets::update => updateTicket "Changes a ticket, or voids it" ! Busy, Void, HasWarnings, InvalidTemplate;
        DELETE "/api/tickets/{id}" Write tickets::delete => deleteTicket "Deletes a ticket with its PDF" ! Busy;
        GET "/api/tickets/{id}/pdf" Call pdf::download => downloadTicket "Downloads the PDF of a ticket" ! NotReady, Failed, Gone, Invalid, InvalidTemplate;
        GET "/api/tickets/{id}/qr.svg" Call codes::svg => getTicketCodeSvg "Shows the QR code of a ticket as SVG" ! Gone, Invalid;
        GET "/api/tickets/{id}/qr.png" Call codes::png => getTicketCodePng "Shows the QR code of a ticket as PNG" ! Gone, Invalid;
        POST "/api/tickets/{id}/links" Write links::of_ticket => linkTicket "Makes a link to a ticket for people without a key";
        POST "/api/tickets/{id}/reissue" Write tickets::reissue => reissueTicket "Issues a ticket anew: older paper is refused" ! Void;
        POST "/api/events/{id}/batches" Write uploads::create => uploadGuests "Orders a ticket for each guest of a file" ! HasWarnings, InvalidTemplate;
        GET "/api/events/{id}/batches" Call batches::list_of_event => listEventBatches "Lists the orders for an event";
        GET "/api/batches" Call batches::list => listBatches "Lists orders";
        GET "/api/batches/{id}" Call batches::read => getBatch "Shows the progress of an order";
        GET "/api/batches/{id}/pdf" Call batch_files::pdf => downloadBatchPdf "Downloads all tickets of an order as one PDF" ! NotReady, Overloaded, Invalid, InvalidTemplate;
        GET "/api/batches/{id}/zip" Call batch_files::zip => downloadBatchZip "Downloads all tickets of an order as a ZIP" ! NotReady, Overloaded, Invalid, InvalidTemplate;
        GET "/api/batches/{id}/tickets.csv" Call batch_files::table => downloadBatchTable "Downloads the tickets of an order as CSV" ! Overloaded;
        POST "/api/batches/{id}/links" Write links::of_batch => linkBatch "Makes a link to all tickets of an order for people without a key";
        GET "/api/links/{token}" Nothing links::open => openLink "Downloads the file of a link" ! NotReady, Failed, Gone, LinkExpired, Invalid, InvalidTemplate, Overloaded;
        POST "/api/batches/{id}/retry" Write batches::retry => retryBatch "Tries the failed tickets of an order again";
        POST "/api/batches/{id}/cancel" Write batches::cancel => cancelBatch "Makes the tickets of an order void that are not made yet";
        POST "/api/verify" Call verify::verify => verifyToken "Tells whether a ticket's token is genuine and admits" ! Forbidden;
    })
}

/// Check-in: scans, bundles, statistics, lists, gates, devices.
fn checkin() -> Room {
    room!("Check-in" {
        POST "/api/checkin/redeem" Admit door::redeem => redeemTicket "Lets a guest in or out, if the ticket admits" ! NotFound, Forbidden, UnknownList, UnknownGate, NonceUsed;
        POST "/api/checkin/undo" Admit door::undo => undoScan "Takes a scan back" ! NotFound, NotYours, TooLate, NothingToUndo, ExitFollows;
        POST "/api/checkin/scans" Admit door::upload => uploadScans "Takes scans that were made without a network" ! NotFound, Forbidden, UnknownList, UnknownGate, NonceUsed;
        GET "/api/checkin/bundle" Admit door::bundle => getBundle "Gives what a device needs to decide without a network" ! NotFound, Forbidden, InvalidQuery;
        GET "/api/checkin/me" Admit devices::me => getDoor "Tells which events this key may admit to";
        POST "/api/checkin/enrol" Nothing devices::enrol => enrolDevice "Turns an enrolment code into a key for a device" ! WrongCode, TooManyWrongCodes;
        GET "/api/events/{id}/lists" Call setup::lists => listLists "Lists the check-in lists of an event";
        POST "/api/events/{id}/lists" Write setup::create_list => createList "Creates a check-in list" ! Busy;
        GET "/api/lists/{id}" Call setup::read_one_list => getList "Shows a check-in list";
        PATCH "/api/lists/{id}" Write setup::update_list => updateList "Changes a check-in list" ! Busy;
        DELETE "/api/lists/{id}" Write setup::delete_list => deleteList "Deletes a check-in list" ! BuiltIn, Busy;
        GET "/api/events/{id}/gates" Call setup::gates => listGates "Lists the gates of an event";
        POST "/api/events/{id}/gates" Write setup::create_gate => createGate "Creates a gate";
        GET "/api/gates/{id}" Call setup::read_one_gate => getGate "Shows a gate";
        PATCH "/api/gates/{id}" Write setup::update_gate => updateGate "Renames a gate" ! Busy;
        DELETE "/api/gates/{id}" Write setup::delete_gate => deleteGate "Deletes a gate" ! Busy;
        GET "/api/events/{id}/devices" Call devices::list => listDevices "Lists the scanning devices of an event";
        POST "/api/events/{id}/devices" Write devices::create => createDevice "Makes a scanning device with a key of its own";
        GET "/api/devices/{id}" Call devices::read => getDevice "Shows a scanning device";
        DELETE "/api/devices/{id}" Write devices::revoke => revokeDevice "Revokes the key of a device" ! Busy;
        GET "/api/events/{id}/blocks" Call blocks::list => listBlocks "Lists the blocked tickets of an event";
        GET "/api/tickets/{id}/block" Call blocks::read => getBlock "Shows the block of a ticket";
        PUT "/api/tickets/{id}/block" Write blocks::block => blockTicket "Refuses a ticket at every door until the block is lifted" ! Busy;
        DELETE "/api/tickets/{id}/block" Write blocks::unblock => unblockTicket "Lifts the block of a ticket" ! Busy;
        GET "/api/events/{id}/scans" Call reports::scans => listScans "Lists the scans of an event";
        GET "/api/events/{id}/conflicts" Call reports::conflicts => listConflicts "Lists tickets that were let in twice";
        GET "/api/events/{id}/checkin" Call reports::statistics => getCheckInStatistics "Counts guests, entries and refusals";
    })
}

/// API keys, the audit log.
fn identity() -> Room {
    room!("Access" {
        POST "/api/keys" Write api_keys::create => createKey "Makes an API key, whose secret is shown once" ! NameTaken, TooMany;
        GET "/api/keys" Call api_keys::list => listKeys "Lists API keys";
        GET "/api/keys/{id}" Call api_keys::read => getKey "Shows an API key, without its secret";
        PATCH "/api/keys/{id}" Write api_keys::update => updateKey "Changes the name or the end of an API key" ! NameTaken, PresetKey, Conflict, Busy;
        POST "/api/keys/{id}/rotate" Write api_keys::rotate => rotateKey "Gives an API key another secret, which is shown once" ! PresetKey, Conflict, TooMany;
        DELETE "/api/keys/{id}" Write api_keys::revoke => revokeKey "Revokes an API key" ! PresetKey, Busy;
        GET "/api/audit" Oversee audit::list => listAudit "Lists changes: who, what, when, from where, before and after";
        GET "/api/audit/{id}" Oversee audit::read => getAudit "Shows an entry of the audit log";
    })
}

/// Webhooks and their deliveries.
fn webhook() -> Room {
    room!("Webhooks" {
        POST "/api/webhooks" Write webhooks::create => createWebhook "Makes a webhook, whose secret is shown once" ! TooMany;
        GET "/api/webhooks" Call webhooks::list => listWebhooks "Lists webhooks";
        GET "/api/webhooks/{id}" Call webhooks::read => getWebhook "Shows a webhook, without its secret";
        PATCH "/api/webhooks/{id}" Write webhooks::update => updateWebhook "Changes a webhook, disables it or makes it active" ! Busy, Conflict;
        DELETE "/api/webhooks/{id}" Write webhooks::delete => deleteWebhook "Deletes a webhook";
        POST "/api/webhooks/{id}/rotate" Write webhooks::rotate => rotateWebhook "Gives a webhook another secret, which is shown once";
        POST "/api/webhooks/{id}/test" Write webhooks::test => testWebhook "Sends a test message" ! Conflict;
        POST "/api/webhooks/{id}/redeliver" Write deliveries::redeliver_all => redeliverAll "Sends everything once more that failed since a time" ! Conflict;
        GET "/api/webhooks/{id}/deliveries" Call deliveries::list => listDeliveries "Lists what was sent to a webhook";
        GET "/api/webhooks/{id}/deliveries/{delivery}" Call deliveries::read => getDelivery "Shows a message with every attempt and answer";
        POST "/api/webhooks/{id}/deliveries/{delivery}/redeliver" Write deliveries::redeliver => redeliver "Sends a message once more" ! Conflict;
    })
}

/// Campaigns, their recipients, accounts, suppressed addresses, what providers and recipients tell.
fn campaign() -> Room {
    room!("Campaigns" {
        POST "/api/contracts" Write campaigns::create => createContract "Makes a campaign" ! CampaignNotReady;
        GET "/api/contracts" Call campaigns::list => listContracts "Lists campaigns";
        GET "/api/contracts/{id}" Call campaigns::read => getContract "Shows a campaign with its counts";
        PATCH "/api/contracts/{id}" Write campaigns::update => updateContract "Changes a campaign" ! CampaignState, Busy;
        DELETE "/api/contracts/{id}" Write campaigns::delete => deleteContract "Deletes a campaign with its recipients" ! Busy;
        POST "/api/contracts/{id}/start" Write verbs::start => startContract "Starts a campaign, now or later, or resumes it" ! CampaignState, CampaignNotReady, Importing, Busy;
        POST "/api/contracts/{id}/pause" Write verbs::pause => pauseContract "Pauses a campaign: only messages in flight may still arrive" ! CampaignState;
        POST "/api/contracts/{id}/resume" Write verbs::resume => resumeContract "Resumes a paused campaign where it was" ! CampaignState, CampaignNotReady, Importing, Busy;
        POST "/api/contracts/{id}/cancel" Write verbs::cancel => cancelContract "Ends a campaign: what was not sent is skipped" ! CampaignState, Busy;
        POST "/api/contracts/{id}/validate" Call trial::validate => validateContract "Tells what a campaign would do";
        POST "/api/contracts/{id}/preview" Call trial::preview => previewContract "Shows the message of one recipient" ! InvalidFields;
        POST "/api/contracts/{id}/test" Write trial::test => testContract "Sends the message to other addresses, to try it out" ! Conflict;
        POST "/api/contracts/{id}/retry-failed" Write verbs::retry_failed => retryFailedRecipients "Tries failed recipients again" ! CampaignState;
        POST "/api/contracts/{id}/unknown" Write verbs::unknown => settleUnknownRecipients "Settles recipients of whom nobody knows whether the message arrived" ! CampaignState;
        POST "/api/contracts/{id}/recipients" Write recipients::import => importRecipients "Adds the recipients of a file" ! CampaignState, Importing, TooMany, Invalid;
        POST "/api/contracts/{id}/guests" Write recipients::guests => importGuests "Adds the guests of an event or an order" ! CampaignState, Importing, TooMany, UnreadableFile;
        GET "/api/contracts/{id}/recipients" Call recipients::list => listRecipients "Lists recipients with their states";
        GET "/api/contracts/{id}/recipients/{recipient}" Call recipients::read => getRecipient "Shows a recipient with every attempt";
        GET "/api/contracts/{id}/report" Call outcomes::read => getReport "Shows what has become of a campaign";
        GET "/api/contracts/{id}/report.csv" Call outcomes::table => downloadReport "Downloads a row for each recipient as CSV";
        POST "/api/accounts" Write accounts::create => createAccount "Makes an account, whose credentials are never shown" ! IdTaken, TooMany;
        GET "/api/accounts" Call accounts::list => listAccounts "Lists accounts";
        GET "/api/accounts/{id}" Call accounts::read => getAccount "Shows an account, without its credentials";
        PATCH "/api/accounts/{id}" Write accounts::update => updateAccount "Changes an account" ! Busy;
        DELETE "/api/accounts/{id}" Write accounts::delete => deleteAccount "Deletes an account" ! InUse, BuiltIn, Busy;
        POST "/api/accounts/{id}/check" Write accounts::check => checkAccount "Asks the provider whether it accepts an account";
        GET "/api/suppressions" Call suppressions::list => listSuppressions "Lists addresses that get nothing any more";
        POST "/api/suppressions" Write suppressions::add => addSuppressions "Suppresses addresses";
        DELETE "/api/suppressions" Write suppressions::remove => removeSuppression "Lets an address get messages again" ! NotFound;
        GET "/hooks/{channel}/{account}" Nothing hooks::challenge => answerChallenge "Proves to WhatsApp that a hook is ours";
        POST "/hooks/{channel}/{account}" Nothing hooks::receipts => receiveReceipts "Takes what a provider tells of messages" ! WrongSignature;
        POST "/hooks/bounces/{account}" Nothing hooks::bounces => receiveBounces "Takes bounces and complaints of mail" ! WrongSignature;
        GET "/u/{token}" Nothing unsubscribe::page => showUnsubscribe "Shows a page with a button to unsubscribe";
        POST "/u/{token}" Nothing unsubscribe::confirm => unsubscribe "Unsubscribes an address";
    })
}

/// Templates of organisers.
fn template() -> Room {
    room!("Templates" {
        POST "/api/templates" Write templates::create => createTemplate "Keeps a new template, if it compiles" ! InvalidTemplate;
        GET "/api/templates" Call templates::list => listTemplates "Lists designs and templates";
        POST "/api/templates/validate" Write previews::validate => validateTemplate "Compiles files that are not kept" ! NotFound, InvalidTemplate;
        POST "/api/templates/preview" Write previews::preview_files => previewFiles "Prints a sample ticket with files that are not kept" ! NotFound, InvalidTemplate;
        GET "/api/templates/{id}" Call templates::read => getTemplate "Shows a template or design with its files";
        PUT "/api/templates/{id}" Write templates::update => updateTemplate "Adds a revision to a template" ! ReadOnly, TooMany, Busy, InvalidTemplate;
        DELETE "/api/templates/{id}" Write templates::delete => deleteTemplate "Deletes a template" ! ReadOnly, InUse, Busy;
        POST "/api/templates/{id}/preview" Write previews::preview_template => previewTemplate "Prints a sample ticket with a template or design" ! InvalidTemplate;
        GET "/api/templates/{id}/revisions" Call templates::revisions => listRevisions "Lists the revisions of a template";
        GET "/api/templates/{id}/revisions/{number}" Call templates::revision => getRevision "Shows a revision with its files";
    })
}

/// Queues, jobs, dead letters, schedules, rate limits, circuit breakers, suspects.
fn queue() -> Room {
    room!("Queues" {
        GET "/api/queues/status" Oversee queues::status => getQueues "Shows all queues with counts and active jobs";
        POST "/api/queues/clean" Administer queues::clean => cleanQueues "Removes old jobs" ! NotFound;
        POST "/api/queues/{name}/pause" Administer operate::pause => pauseQueue "Lets workers take no more jobs of a queue";
        POST "/api/queues/{name}/resume" Administer operate::resume => resumeQueue "Lets workers take jobs of a queue again";
        POST "/api/queues/{name}/concurrency" Administer operate::concurrency => limitQueue "Limits the jobs of a queue that run at a time";
        POST "/api/queues/{name}/retry" Administer operate::retry => retryQueue "Retries the failed jobs of a queue";
        POST "/api/queues/{name}/drain" Administer operate::drain => drainQueue "Removes the waiting jobs of a queue";
        POST "/api/queues/{name}/obliterate" Administer operate::obliterate => obliterateQueue "Destroys a queue with everything in it" ! NotConfirmed, Busy;
        POST "/api/queues/{name}/{action}" Administer operate::unknown => unknownQueueAction "Refuses an action that queues do not have";
        GET "/api/queues/{name}/jobs" Oversee jobs::list => listJobs "Lists jobs of a queue, or searches them";
        POST "/api/queues/{name}/jobs" Administer jobs::add => addJob "Adds a job";
        GET "/api/queues/{name}/jobs/{id}" Oversee jobs::read => getJob "Shows a job with its log";
        DELETE "/api/queues/{name}/jobs/{id}" Administer jobs::remove => removeJob "Removes a job that does not run" ! WrongState, Conflict;
        POST "/api/queues/{name}/jobs/{id}/retry" Administer jobs::retry => retryJob "Runs a failed job again" ! WrongState, Conflict;
        POST "/api/queues/{name}/jobs/{id}/promote" Administer jobs::promote => promoteJob "Lets a delayed job begin now" ! WrongState, Conflict;
        POST "/api/queues/{name}/jobs/{id}/cancel" Administer jobs::cancel => cancelJob "Removes a job that waits, or stops one that runs" ! WrongState, Conflict;
        POST "/api/queues/{name}/jobs/{id}/{action}" Administer jobs::unknown => unknownJobAction "Refuses an action that jobs do not have";
        GET "/api/queues/{name}/dead-letters" Oversee dead_letters::list => listDeadLetters "Lists jobs that failed permanently";
        POST "/api/queues/{name}/dead-letters/replay" Administer dead_letters::replay => replayDeadLetters "Runs jobs that failed permanently again";
        POST "/api/queues/{name}/dead-letters/purge" Administer dead_letters::purge => purgeDeadLetters "Throws dead letters away";
        POST "/api/queues/{name}/dead-letters/{action}" Administer dead_letters::unknown => unknownLetterAction "Refuses an action that dead letters do not have";
        GET "/api/queues/{name}/schedules" Oversee schedules::list => listSchedules "Lists schedules of a queue";
        GET "/api/queues/{name}/schedules/{id}" Oversee schedules::read => getSchedule "Shows a schedule";
        PUT "/api/queues/{name}/schedules/{id}" Administer schedules::set => setSchedule "Sets a schedule" ! Busy;
        DELETE "/api/queues/{name}/schedules/{id}" Administer schedules::remove => removeSchedule "Ends a schedule" ! Busy;
        GET "/api/limits" Oversee limits::list => listLimits "Lists rate limits";
        GET "/api/limits/{name}" Oversee limits::read => getLimit "Shows a rate limit";
        PUT "/api/limits/{name}" Administer limits::set => setLimit "Sets a rate limit for all workers" ! Busy;
        DELETE "/api/limits/{name}" Administer limits::remove => removeLimit "Removes a rate limit" ! Busy;
        GET "/api/breakers" Oversee limits::breakers => listBreakers "Lists circuit breakers that are not closed";
        DELETE "/api/breakers/{name}" Administer limits::close_breaker => closeBreaker "Closes a circuit breaker";
        GET "/api/suspects" Oversee suspects::list => listSuspects "Lists templates that brought their processes down";
        DELETE "/api/suspects/{name}" Administer suspects::lift => liftSuspect "Lifts a suspicion";
    })
}

/// Stickers.
fn studio() -> Room {
    room!("Stickers" {
        POST "/api/stickers" Write stickers::draw => drawSticker "Draws a sticker, or one in several variants" ! Overloaded;
        POST "/api/stickers/batch" Write stickers::draw_batch => drawStickers "Draws several stickers" ! Overloaded;
        GET "/api/stickers/variants" Call stickers::variants => listStickerVariants "Lists the variants that ship, with pictures";
        GET "/api/stickers/pool" Call stickers::statistics => getStickerPool "Counts what the pool of this node does";
        GET "/api/stickers/{name}" Call stickers::read => getSticker "Downloads a sticker" ! NotReady, Failed;
    })
}

/// What happens, as it happens.
fn live() -> Room {
    room!("Live" {
        GET "/api/events/stream" Watch live_routes::stream => streamEvents "Streams what happens, as server-sent events";
        GET "/api/batches/{id}/events" Call live_routes::batch => streamBatch "Streams the state of an order and what happens to it, as server-sent events";
        GET "/ws" Nothing live_routes::web_socket => openWebSocket "Opens a WebSocket with the same events";
    })
}

/// Nodes, workers, scaling.
fn cluster() -> Room {
    room!("Cluster" {
        GET "/api/nodes" Oversee nodes::list => listNodes "Lists the nodes that are alive";
        POST "/api/nodes/{id}/commands" Administer nodes::command => commandNode "Sends a command to a node, or to all" ! Conflict;
        GET "/api/cluster" Oversee nodes::cluster => getCluster "Shows the cluster";
        GET "/api/scaling/history" Oversee nodes::history => listDecisions "Lists the last decisions about workers";
    })
}

/// Health, and the description of the API, for balancers and people.
fn vitals() -> Room {
    room!("Service" {
        GET "/health" Nothing health::health => getHealth "Tells that the process answers";
        GET "/ready" Nothing health::ready => getReadiness "Tells whether the node can do its work";
        GET "/metrics" Watch metrics::show => getMetrics "Shows what this node has counted, for Prometheus";
        GET "/api/openapi.json" Nothing description::openapi => getOpenApi "Describes this API as an OpenAPI document";
        GET "/api/docs" Nothing description::page => getDocs "Describes this API as a page for people";
    })
}

/// All rooms.
pub(crate) fn rooms() -> [Room; 11] {
    [
        ticketing(),
        checkin(),
        template(),
        identity(),
        webhook(),
        campaign(),
        studio(),
        queue(),
        live(),
        cluster(),
        vitals(),
    ]
}

/// The list of all routes, each with the right it demands.
pub fn routes() -> Vec<Route> {
    rooms().into_iter().flat_map(Room::into_routes).collect()
}

/// No request may take longer; the slowest, an order of 100,000 tickets, takes a few seconds.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// No upload may take longer: a large file arrives at the pace of its client, which has a limit of its own (`body/upload.rs`).
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// The time that a request may take.
pub(crate) fn time_limit(request: &Request) -> Duration {
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    match (request.method().as_str(), path) {
        ("POST", Some("/api/events/{id}/batches" | "/api/contracts/{id}/recipients")) => {
            UPLOAD_TIMEOUT
        }
        _ => REQUEST_TIMEOUT,
    }
}

/// Refuses a request that takes too long.
async fn limit_time(request: Request, next: Next) -> Response {
    let limit = time_limit(&request);
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let detail = format!(
                "the request took longer than {limit:?}; a change that it asked for may still be made"
            );
            Problem::new(Code::TooSlow, detail).into_response()
        }
    }
}

/// Measures the time to an answer, for metrics, and for nodes whose workers make way for the API. For those, previews and files of
/// whole batches do not count: they are slow by nature.
async fn note_time(State(app): State<App>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let counts = path.starts_with("/api/")
        && !["/api/templates", "/api/batches"].iter().any(|slow| path.starts_with(slow))
        && time_limit(&request) == REQUEST_TIMEOUT;
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = request.method().clone();
    let started = Instant::now();
    let response = next.run(request).await;
    let took = started.elapsed();
    if counts {
        app.latency.record(took);
    }
    let (route, status) = (route.as_ref().map(MatchedPath::as_str), response.status().as_u16());
    app.metrics.metrics().http(method.as_str(), route, status, took);
    response
}

/// Turns a panic of a handler into a 500.
pub(crate) fn panicked(panic: Box<dyn std::any::Any + Send>) -> Response {
    let cause = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    Problem::internal(&format!("panicked: {cause}")).into_response()
}

/// The API as a service, without what all requests pass (`front.rs`).
pub(crate) fn router(app: App) -> Router {
    rooms()
        .into_iter()
        .fold(Router::new(), |all, room| all.merge(room.into_router()))
        .fallback(async || Problem::new(Code::NotFound, "there is no such route"))
        .method_not_allowed_fallback(async || {
            Problem::new(Code::MethodNotAllowed, "this route does not know that method")
        })
        .layer(middleware::from_fn_with_state(app.clone(), trace::follow))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(middleware::from_fn(limit_time))
        .layer(middleware::from_fn_with_state(app.clone(), note_time))
        .with_state(app)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Right;

    #[test]
    fn only_health_links_hooks_enrolment_and_the_description_are_open_and_operators_rooms_need_administrators()
     {
        for route in routes() {
            let operators = ["/api/queues", "/api/limits", "/api/breakers", "/api/nodes"]
                .into_iter()
                .chain(["/api/cluster", "/api/scaling", "/api/suspects", "/api/audit"])
                .any(|room| route.path.starts_with(room));
            match route.path {
                "/health"
                | "/ready"
                | "/api/openapi.json"
                | "/api/docs"
                | "/api/checkin/enrol"
                | "/api/links/{token}"
                | "/ws"
                | "/u/{token}"
                | "/hooks/{channel}/{account}"
                | "/hooks/bounces/{account}" => {
                    assert_eq!(route.right, Right::Nothing, "{route:?}")
                }
                _ if operators && route.method == "GET" => {
                    assert_eq!(route.right, Right::Oversee, "{route:?}")
                }
                _ if operators => assert_eq!(route.right, Right::Administer, "{route:?}"),
                _ => {
                    let rights = [Right::Call, Right::Write, Right::Watch, Right::Admit];
                    assert!(rights.contains(&route.right), "{route:?}");
                }
            }
        }
    }
}

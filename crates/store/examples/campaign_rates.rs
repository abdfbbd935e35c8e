//! How fast a store takes in and settles the recipients of a campaign.
//!
//! ```text
//! cargo run --release -p stampede-store --example campaign_rates -- [sqlite:/tmp/rates.db] [recipients]
//! ```
//!
//! Imports recipients in pieces of 1,000, then feeds, claims and records all of them in groups of 100, one group after the
//! other: each group is a commit that is synced, as it is in a worker.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::{Duration, Instant};

use stampede_model::campaign::{
    AccountId, AutoPause, CampaignChange, CampaignState, Content, Pacing,
};
use stampede_model::{CampaignId, RecipientId, RunId, Timestamp};
use stampede_store::{
    Attempt, AttemptEffect, Campaign, CampaignCounts, Claim, Claimed, Config, Move, NewRecipient,
    RunResult, Store,
};

const PIECE: usize = 1_000;
const GROUP: usize = 100;
/// Recipients that are sent to.
const SENT: usize = 10_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = std::env::temp_dir().join(format!("campaign-rates-{}", std::process::id()));
    let url = arguments.next().unwrap_or(format!("sqlite:{}/rates.db", folder.display()));
    let count: usize = arguments.next().map_or(Ok(200_000), |count| count.parse())?;
    let store = Store::connect(&Config { url, ..Config::default() }).await?;
    store.migrate().await?;
    let campaign = campaign();
    store.insert_campaign(&campaign).await?;

    let begin = Instant::now();
    import(&store, campaign.id, count).await?;
    println!("{count} recipients imported in {:.1?}", begin.elapsed());

    let now = Timestamp::now();
    let start = Move {
        campaign: campaign.id,
        change: CampaignChange::Start,
        reason: None,
        seen: None,
        start_at: None,
        now,
    };
    store.move_campaign(&start).await?;
    let version = store.campaign(campaign.id).await?.ok_or("no campaign")?.updated_at;
    let mut spent = [Duration::ZERO; 3];
    let mut sent = 0;
    while sent < SENT.min(count) {
        let begin = Instant::now();
        let fed = store.feed_campaign(campaign.id, GROUP as u32, now).await?;
        spent[0] += begin.elapsed();
        if fed.queued.is_empty() {
            break;
        }
        let claims: Vec<Claim> = fed.queued.iter().map(|id| claim(*id, version)).collect();
        let begin = Instant::now();
        let claimed = store.claim_recipients(&claims, now).await?;
        spent[1] += begin.elapsed();
        assert!(claimed.iter().all(|answer| matches!(answer, Claimed::Send(_))));
        let results: Vec<RunResult> = claims.iter().map(|claim| accepted(claim, now)).collect();
        let begin = Instant::now();
        let recorded = store.record_runs(&results, now).await?;
        spent[2] += begin.elapsed();
        assert!(recorded.iter().all(|is_recorded| *is_recorded));
        sent += results.len();
    }
    let groups = (sent / GROUP).max(1) as u32;
    for (name, time) in ["feed", "claim", "record"].iter().zip(spent) {
        println!("{name}: {:.1?} a group of {GROUP}", time / groups);
    }
    let all: Duration = spent.iter().sum();
    println!("{:.0} messages a second", sent as f64 / all.as_secs_f64());
    let begin = Instant::now();
    assert!(store.wrong_campaign_counts().await?.is_empty());
    println!("counts compared in {:.1?}", begin.elapsed());
    let begin = Instant::now();
    let cancel = Move { change: CampaignChange::Cancel, ..start };
    store.move_campaign(&cancel).await?;
    while store.skip_cancelled(campaign.id, GROUP as u32, now).await? > 0 {}
    println!("cancelled in {:.1?}", begin.elapsed());
    store.close().await;
    std::fs::remove_dir_all(folder).ok();
    Ok(())
}

async fn import(store: &Store, campaign: CampaignId, count: usize) -> Result<(), Box<dyn Error>> {
    let (import, now) = (RecipientId::generate(), Timestamp::now());
    store.begin_import(campaign, import, now, now).await?;
    for first in (0..count).step_by(PIECE) {
        let piece: Vec<NewRecipient> = (first..count.min(first + PIECE)).map(recipient).collect();
        store.import_recipients(campaign, import, &piece, now).await?.ok_or("not open")?;
    }
    let fields = ["name", "city", "code"].map(str::to_owned).into();
    store.end_import(campaign, import, &fields).await?;
    Ok(())
}

fn recipient(number: usize) -> NewRecipient {
    // Addresses of a list are in no order.
    let address = format!("+49{:010}", (number as u64).wrapping_mul(7_919_777) % 10_000_000_000);
    let fields = [("name", "Zoë Müller"), ("city", "Berlin"), ("code", "SPRING-24-XYZ")];
    NewRecipient {
        id: RecipientId::generate(),
        address,
        fields: fields.into_iter().map(|(key, text)| (key.to_owned(), text.to_owned())).collect(),
        message: None,
        time_zone: None,
        ticket: None,
        line: Some(number as u64 + 2),
        skip: None,
    }
}

fn claim(recipient: RecipientId, campaign_seen: Timestamp) -> Claim {
    Claim {
        recipient,
        run: RunId::generate(),
        most_in_flight: GROUP as u32,
        is_idempotent: false,
        campaign_seen,
        account_seen: None,
    }
}

fn accepted(claim: &Claim, now: Timestamp) -> RunResult {
    let provider_id = Some(format!("wamid.{}", claim.recipient));
    RunResult {
        recipient: claim.recipient,
        run: claim.run,
        attempt: Attempt {
            number: 0,
            at: now,
            took: Duration::from_millis(80),
            outcome: "sent".to_owned(),
            code: None,
            answer: Some("{\"messages\":[{\"id\":\"wamid\"}]}".to_owned()),
        },
        effect: AttemptEffect::Sent { provider_id, moved_to: None },
    }
}

fn campaign() -> Campaign {
    let now = Timestamp::now();
    Campaign {
        id: CampaignId::generate(),
        owner: "ann".to_owned(),
        name: "Rates".to_owned(),
        account: AccountId::console(),
        state: CampaignState::Draft,
        reason: None,
        content: Content::Own,
        pacing: Pacing::default(),
        auto_pause: AutoPause::default(),
        max_attempts: 3,
        time_zone: None,
        country: None,
        start_at: None,
        end_at: None,
        event: None,
        batch: None,
        counts: CampaignCounts::default(),
        importing: None,
        created_at: now,
        updated_at: now,
        started_at: None,
        ended_at: None,
    }
}

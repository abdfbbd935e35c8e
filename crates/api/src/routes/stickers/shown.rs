//! Stickers as the API answers with them.

use axum::Json;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, LOCATION, RETRY_AFTER};
use schemars::{JsonSchema, Schema, json_schema};
use stampede_studio::{
    Drawn, Error, Format, NoName, Order, Sticker, StickerName, StudioStats, Timing,
};
use stampede_wire::stickers::{
    Sticker as Shown, StickerCache, StickerPool, StickerStatus, Stickers, TaskTimes,
};

use crate::describe::{Kind, Operation};
use crate::forms::inline_schema;
use crate::problem::Problem;
use crate::ranges::set;

/// The name of a sticker in a path.
pub(crate) struct FileName(pub(crate) StickerName);

impl JsonSchema for FileName {
    inline_schema!(
        "FileName",
        json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}\\.(webp|png|tgs)$" })
    );
}

impl std::str::FromStr for FileName {
    type Err = NoName;

    fn from_str(text: &str) -> Result<Self, NoName> {
        text.parse().map(Self)
    }
}

fn binary() -> Schema {
    json_schema!({ "type": "string", "format": "binary" })
}

/// The file of a sticker.
pub(crate) struct StickerFile;

impl Kind for StickerFile {
    fn describe(operation: &mut Operation<'_>) {
        for format in Format::ALL {
            operation.answers_file("The sticker.", format.media_type(), binary());
        }
    }
}

/// A sticker that was just drawn, several, or one that will be drawn.
pub(crate) struct DrawnAnswer;

impl Kind for DrawnAnswer {
    fn describe(operation: &mut Operation<'_>) {
        let about = "The sticker; with `variants`, JSON with links.";
        operation.answers_json::<Stickers>(200, about);
        for format in Format::ALL {
            operation.answers(200, about, Some((format.media_type(), binary())));
        }
        operation.answers_json::<Shown>(202, "A worker draws it; its path answers with it then.");
        operation.answers_with_header("Location", "The path of the sticker; not with `variants`.");
    }
}

/// The file of a sticker as the answer to its order.
pub(super) fn file(sticker: Sticker) -> Response {
    let Sticker { name, bytes } = sticker;
    let mut response = Response::new(Body::from(bytes));
    set(&mut response, CONTENT_TYPE, name.format.media_type());
    set(&mut response, LOCATION, &name.path());
    set(&mut response, ETAG, &format!("\"{name}\""));
    set(&mut response, CACHE_CONTROL, "private, no-store");
    response
}

/// 202: a worker draws the sticker.
pub(super) fn accepted(order: &Order) -> Response {
    let shown = one(0, order, Ok(Drawn::Later(order.name)));
    let mut response = (StatusCode::ACCEPTED, Json(shown)).into_response();
    set(&mut response, LOCATION, &order.name.path());
    set(&mut response, RETRY_AFTER, "1");
    response
}

/// What has become of several orders.
pub(super) fn all(orders: &[Order], done: Vec<Result<Drawn, Error>>) -> Stickers {
    let stickers = (0..).zip(orders).zip(done).map(|((n, order), done)| one(n, order, done));
    Stickers { stickers: stickers.collect() }
}

/// What has become of one order.
fn one(index: u32, order: &Order, done: Result<Drawn, Error>) -> Shown {
    let (status, bytes, error) = match done {
        Ok(Drawn::Ready(sticker)) => (StickerStatus::Ready, Some(sticker.bytes.len() as u64), None),
        Ok(Drawn::Later(_)) => (StickerStatus::Pending, None, None),
        // The cause of a defect goes to the log, as for a request that fails as a whole.
        Err(error) => (StickerStatus::Failed, None, Some(Problem::from(error).into_detail())),
    };
    Shown {
        index,
        status,
        variant: order.variant.name.clone(),
        config_id: order.variant.config_id.clone(),
        format: order.name.format.to_string(),
        url: order.name.path(),
        bytes,
        error,
    }
}

/// Pool and cache.
pub(super) fn pool(stats: StudioStats) -> StickerPool {
    let StudioStats { pool, cache } = stats;
    StickerPool {
        total_workers: pool.total_workers as u64,
        busy_workers: pool.busy_workers as u64,
        idle_workers: pool.idle_workers as u64,
        queue_size: pool.queue_size as u64,
        tasks_completed: pool.tasks_completed,
        tasks_failed: pool.tasks_failed,
        tasks_refused: pool.tasks_refused,
        queue_limit: pool.queue_limit as u64,
        wait: times(&pool.wait),
        run: times(&pool.run),
        cache: StickerCache {
            bytes: cache.bytes,
            memory: cache.memory,
            files: cache.files,
            drawn: cache.drawn,
        },
    }
}

fn times(timing: &Timing) -> TaskTimes {
    let ms = |time: std::time::Duration| time.as_secs_f64() * 1_000.0;
    TaskTimes { p50_ms: ms(timing.p50), p95_ms: ms(timing.p95), p99_ms: ms(timing.p99) }
}

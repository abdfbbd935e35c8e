//! Stickers: `/api/stickers`, `stampede sticker`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What has become of one order of a sticker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StickerStatus {
    /// It is under `url`.
    Ready,
    /// A worker draws it; it will be under `url`.
    Pending,
    /// It cannot be drawn; `error` says why.
    Failed,
}

/// One order of a sticker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sticker {
    /// Which sticker of the request it is, from 0.
    pub index: u32,
    /// What has become of it.
    pub status: StickerStatus,
    /// The name of its variant; `null` if the request describes the variant.
    pub variant: Option<String>,
    /// The hash of the variant's description.
    pub config_id: String,
    /// The form of its file: `webp`, `png` or `tgs`.
    pub format: String,
    /// The path of its file, which never changes.
    pub url: String,
    /// The length of its file; `null` if it is not drawn.
    pub bytes: Option<u64>,
    /// Why it cannot be drawn.
    pub error: Option<String>,
}

/// The stickers of a request, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stickers {
    /// The stickers.
    pub stickers: Vec<Sticker>,
}

/// A variant that ships.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StickerVariant {
    /// Its place in a set.
    pub index: u32,
    /// Its name.
    pub name: Option<String>,
    /// The hash of its description.
    pub config_id: String,
    /// Its description, as `variant` takes it.
    pub look: Value,
    /// The path of a picture; `null` while the server has no time to draw it.
    pub picture: Option<String>,
}

/// The variants that ship.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StickerVariants {
    /// The variants.
    pub variants: Vec<StickerVariant>,
}

/// How long tasks take, in milliseconds. The percentiles are of the last 1,024 tasks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskTimes {
    /// Half of them took at most so long.
    pub p50_ms: f64,
    /// 95 % of them took at most so long.
    pub p95_ms: f64,
    /// 99 % of them took at most so long.
    pub p99_ms: f64,
}

/// The pool that draws stickers in the process that answers. The first five fields are those of the former software.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StickerPool {
    /// Threads.
    pub total_workers: u64,
    /// Threads that draw.
    pub busy_workers: u64,
    /// All other threads.
    pub idle_workers: u64,
    /// Stickers that wait.
    pub queue_size: u64,
    /// Stickers that were drawn, or could not be drawn for a reason in the order.
    pub tasks_completed: u64,
    /// Stickers whose drawing failed because of a defect.
    pub tasks_failed: u64,
    /// Stickers that were refused because too many waited.
    pub tasks_refused: u64,
    /// Most stickers that may wait.
    pub queue_limit: u64,
    /// From the order to the beginning of the drawing.
    pub wait: TaskTimes,
    /// From the beginning to the end of the drawing.
    pub run: TaskTimes,
    /// Where stickers came from.
    pub cache: StickerCache,
}

/// Where stickers came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StickerCache {
    /// Bytes of the stickers in memory.
    pub bytes: u64,
    /// Answers from memory.
    pub memory: u64,
    /// Answers from files.
    pub files: u64,
    /// Stickers that were drawn.
    pub drawn: u64,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_field_names_are_pinned() {
        let sticker = Sticker {
            index: 0,
            status: StickerStatus::Ready,
            variant: Some("neon".to_owned()),
            config_id: "c".to_owned(),
            format: "webp".to_owned(),
            url: "/api/stickers/k.webp".to_owned(),
            bytes: Some(7),
            error: None,
        };
        let json_of_sticker = json!({
            "index": 0, "status": "ready", "variant": "neon", "configId": "c", "format": "webp",
            "url": "/api/stickers/k.webp", "bytes": 7, "error": null,
        });
        assert_eq!(serde_json::to_value(sticker).unwrap(), json_of_sticker);
        let times = TaskTimes { p50_ms: 0.5, p95_ms: 1.0, p99_ms: 2.0 };
        let pool = StickerPool {
            total_workers: 4,
            busy_workers: 2,
            idle_workers: 2,
            queue_size: 5,
            tasks_completed: 120,
            tasks_failed: 1,
            tasks_refused: 3,
            queue_limit: 100,
            wait: times,
            run: times,
            cache: StickerCache { bytes: 9, memory: 8, files: 7, drawn: 6 },
        };
        let times = json!({ "p50Ms": 0.5, "p95Ms": 1.0, "p99Ms": 2.0 });
        let json_of_pool = json!({
            "totalWorkers": 4, "busyWorkers": 2, "idleWorkers": 2, "queueSize": 5,
            "tasksCompleted": 120, "tasksFailed": 1, "tasksRefused": 3, "queueLimit": 100,
            "wait": times, "run": times,
            "cache": { "bytes": 9, "memory": 8, "files": 7, "drawn": 6 },
        });
        assert_eq!(serde_json::to_value(pool).unwrap(), json_of_pool);
    }
}

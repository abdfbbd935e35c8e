//! One editor at a time of a setting that is kept in Redis: rate limits and schedules.
//!
//! A setting that somebody has read may be changed only if it is still the same. BullMQ's scripts cannot compare, so all
//! nodes take turns instead: a turn is a key in Redis that ends by itself when its holder dies. Programs that write
//! BullMQ's schedules without this crate take no turns.

use std::time::Duration;

use redis::cmd;
use uuid::Uuid;

use crate::{Broker, Error};

script!(END_EDIT);

/// A turn ends by itself after this time, if its holder died.
const LONGEST_TURN: Duration = Duration::from_secs(10);
/// How often a turn is asked for, and the pause in between.
const ASKS: u32 = 150;
const PAUSE: Duration = Duration::from_millis(20);

/// The turn of one editor.
pub struct Edit {
    broker: Broker,
    key: String,
    token: String,
}

impl std::fmt::Debug for Edit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Edit").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Broker {
    /// Waits for its turn to change a setting; `None`: others have had it all the time.
    pub async fn edit(&self, setting: &str) -> Result<Option<Edit>, Error> {
        let key = format!("stampede:edit:{setting}");
        let token = Uuid::now_v7().simple().to_string();
        for _ in 0..ASKS {
            let mut redis = self.redis();
            let taken: Option<String> = cmd("SET")
                .arg(&key)
                .arg(&token)
                .arg("NX")
                .arg("PX")
                .arg(LONGEST_TURN.as_millis() as u64)
                .query_async(&mut redis)
                .await?;
            if taken.is_some() {
                return Ok(Some(Edit { broker: self.clone(), key, token }));
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(None)
    }
}

impl Edit {
    /// Lets the next editor in. Not awaited, the turn ends by itself.
    pub async fn end(self) -> Result<(), Error> {
        let mut call = END_EDIT.prepare_invoke();
        let _: i64 =
            call.key(&self.key).arg(&self.token).invoke_async(&mut self.broker.redis()).await?;
        Ok(())
    }
}

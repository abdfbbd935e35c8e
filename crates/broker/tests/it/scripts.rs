//! The Lua scripts on a real server.

use crate::stage::Stage;

#[tokio::test]
async fn every_script_compiles() {
    let stage = Stage::start().await;
    let mut raw = stage.raw().await;
    for (name, text) in stampede_scripts::queue::ALL
        .iter()
        .chain(stampede_scripts::cluster::ALL)
        .chain(stampede_scripts::feed::ALL)
        .chain(stampede_scripts::quota::ALL)
    {
        let mut load = redis::cmd("SCRIPT");
        load.arg("LOAD").arg(*text);
        let loaded: Result<String, _> = load.query_async(&mut raw).await;
        loaded.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

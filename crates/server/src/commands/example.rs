//! `stampede example orders`: the pipeline of `examples/orders` on an engine in a temporary folder.

use anyhow::Result;
use stampede_broker::Config;
use stampede_example_orders::Options;
use tokio_util::sync::CancellationToken;

use crate::cli::FsyncArg;
use crate::local_engine::LocalEngine;
use crate::settings::EngineAddress;

pub(crate) async fn orders(options: Options) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("stampede-example-").tempdir()?;
    let address = EngineAddress::default();
    let engine =
        LocalEngine::start(folder.path(), &address, FsyncArg::Everysec, CancellationToken::new())
            .await?;
    let result = stampede_example_orders::run(&options, &Config::new(engine.url())).await;
    engine.stop().await?;
    result
}

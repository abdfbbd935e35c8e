//! The command line of `stampede sticker`.

use std::path::PathBuf;

use clap::Args;

use super::ServerArgs;

/// Options of `sticker`.
#[derive(Debug, Args)]
pub(crate) struct Sticker {
    /// The text; \n begins a new line
    pub(crate) text: String,
    /// The file; its end says the format: .webp, .png or .tgs
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// The name of a variant, or its description as JSON [default: the first that ships]
    #[arg(long)]
    pub(crate) variant: Option<String>,
    /// How urgent it is: vip, normal or batch
    #[arg(long)]
    pub(crate) priority: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

//! The command line of `stampede template`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ServerArgs;

/// Commands of `template`.
#[derive(Debug, Subcommand)]
pub(crate) enum Template {
    #[command(flatten)]
    Local(LocalTemplate),
    /// Check a template and hand it to a running server: as a new one, or as the next revision of yours with that name
    Publish(TemplatePublish),
}

/// Those that work without a server.
#[derive(Debug, Subcommand)]
pub(crate) enum LocalTemplate {
    /// Begin a template: copies a design that ships into a new folder
    New {
        /// The folder; made if it does not exist
        dir: PathBuf,
        /// Which design: a4, stub or badge
        #[arg(long, default_value = "a4")]
        design: String,
    },
    /// Compile a template and say all that is wrong with it
    Check(TemplateSource),
    /// Make a sample ticket with a template, as PDF or PNG
    Preview(TemplatePreview),
    /// Make the sample ticket anew whenever a file of the template is saved, until Ctrl-C
    Watch(TemplatePreview),
}

/// Options of `template publish`.
#[derive(Debug, Args)]
pub(crate) struct TemplatePublish {
    /// The folder with template.typ
    pub(crate) dir: PathBuf,
    /// What the template is called [default: the name of the folder]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The template to add a revision to, whatever it is called
    #[arg(long, value_name = "TEMPLATE")]
    pub(crate) id: Option<String>,
    /// What is new, for the list of revisions
    #[arg(long)]
    pub(crate) note: Option<String>,
    /// Let this event print with it, and with revisions to come
    #[arg(long, value_name = "EVENT")]
    pub(crate) event: Option<String>,
    /// Let the event keep to this revision
    #[arg(long, requires = "event")]
    pub(crate) pin: bool,
    /// Print one JSON object instead of a report
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// A template in a folder, and what to try it out with.
#[derive(Debug, Args)]
pub(crate) struct TemplateSource {
    /// The folder with template.typ
    pub(crate) dir: PathBuf,
    /// The event to print: a JSON object as for POST /api/events, or a file with one [default: a sample]
    #[arg(long, value_name = "JSON or FILE")]
    pub(crate) event: Option<String>,
    /// The ticket to print: a JSON object with name, seat and price, or a file with one [default: a sample]
    #[arg(long, value_name = "JSON or FILE")]
    pub(crate) ticket: Option<String>,
}

/// Options of `template preview` and `template watch`.
#[derive(Debug, Args)]
pub(crate) struct TemplatePreview {
    #[command(flatten)]
    pub(crate) source: TemplateSource,
    /// Where to write it: a name that ends in .pdf or .png [default: preview.pdf in the folder]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Page of the picture, from 1
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) page: u32,
    /// Resolution of the picture in dots per inch
    #[arg(long, default_value_t = 144, value_parser = clap::value_parser!(u32).range(20..=600))]
    pub(crate) dpi: u32,
}

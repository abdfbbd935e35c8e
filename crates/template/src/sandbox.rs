//! Running people's templates in child processes that can be killed.
//!
//! ```text
//! Sandbox ── request ──▶ stdin  ┌──────────────────────────┐
//!    ▲                          │ stampede template-sandbox│  no environment, no files, no network;
//!    └────── answer ◀── stdout  └──────────────────────────┘  limited memory and processor time
//! ```
//!
//! The time of a request is measured at the processor: a busy machine is not the template's fault. A child that gives no
//! answer for much longer is killed, too.
//!
//! A child answers one request at a time and is used again; one that fails in any way is replaced. A
//! template that loops, eats memory or overflows the stack takes down nothing but its own child. When
//! the future of a request is dropped, its child is killed. Children end with their parent: they watch
//! their standard input.

mod child;
mod process;
mod protocol;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stampede_model::TicketDocument;
use stampede_render::compiled::Typeset;
use stampede_render::{Continuation, Piece};
use tokio::sync::Semaphore;

use self::process::Process;
use self::protocol::{Answer, Request};
use crate::{Bundle, Diagnostic, EventData, Published};

pub use self::child::sandbox_main;

/// What the binary is called with to become a child.
pub const SUBCOMMAND: &str = "template-sandbox";

/// A child is replaced after this many requests: Typst never forgets a file name or a symbol.
const MOST_REQUESTS: u32 = 500;

/// Why a template gave no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It has mistakes; these tell where.
    #[error("{}", stampede_model::Diagnostic::join(.0))]
    Template(Vec<Diagnostic>),
    /// It did not come to an end within this processor time.
    #[error(
        "the template takes longer than {0:?}: look for a loop that never ends, or for too many pages"
    )]
    TimedOut(Duration),
    /// It wanted more memory than it may have.
    #[error("the template needs more than {} MB of memory: use fewer or smaller images", .0 >> 20)]
    TooMuchMemory(u64),
    /// It brought its process down in some other way.
    #[error(
        "the template made the typesetter crash ({0}): look for functions that call themselves without end"
    )]
    Crashed(String),
    /// No child could be started or spoken to; this is not the template's fault.
    #[error("the typesetter cannot be started: {0}")]
    Unavailable(String),
}

/// What a template may use.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Longest processor time for one request, in whole seconds; the kernel may give one more.
    pub time: Duration,
    /// Longest time until the answer, on a machine that does other things too.
    pub patience: Duration,
    /// Most memory of a child in bytes.
    pub memory: u64,
    /// Most children at once; further requests wait.
    pub children: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let (time, patience) = (Duration::from_secs(10), Duration::from_secs(60));
        Self { time, patience, memory: 768 << 20, children: 2 }
    }
}

/// Runs templates in children; clones share them.
#[derive(Debug, Clone)]
pub struct Sandbox {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    program: PathBuf,
    limits: Limits,
    running: Semaphore,
    idle: Mutex<Vec<Process>>,
}

impl Sandbox {
    /// A sandbox whose children run `program template-sandbox`.
    pub fn new(program: PathBuf, limits: Limits) -> Self {
        let running = Semaphore::new(limits.children.max(1));
        Self { shared: Arc::new(Shared { program, limits, running, idle: Mutex::default() }) }
    }

    /// A sandbox whose children run the very program that is running, even if its file was replaced.
    pub fn of_this_program(limits: Limits) -> Self {
        Self::new(PathBuf::from("/proc/self/exe"), limits)
    }

    /// Starts a child and lets it load its fonts, so that the first request need not wait for that.
    pub async fn warm(&self) -> Result<(), Error> {
        match self.ask(&Request::Warm).await? {
            Answer::Warm => Ok(()),
            other => Err(other.unexpected()),
        }
    }

    /// [`crate::compile()`] in a child.
    pub async fn compile(&self, bundle: &Bundle, event: &EventData) -> Result<Published, Error> {
        let request = Request::Compile { bundle: bundle.clone(), event: event.clone() };
        match self.ask(&request).await? {
            Answer::Published(published) => Ok(published),
            other => Err(other.unexpected()),
        }
    }

    /// [`crate::mistakes()`] in a child.
    pub async fn mistakes(
        &self,
        bundle: &Bundle,
        event: &EventData,
    ) -> Result<Vec<Diagnostic>, Error> {
        let request = Request::Mistakes { bundle: bundle.clone(), event: event.clone() };
        match self.ask(&request).await {
            Err(Error::Template(mistakes)) => Ok(mistakes),
            Err(error) => Err(error),
            Ok(other) => Err(other.unexpected()),
        }
    }

    /// [`crate::typeset()`] in a child.
    pub async fn typeset(
        &self,
        template: &Typeset,
        ticket: &TicketDocument,
    ) -> Result<Vec<u8>, Error> {
        let request = Request::Typeset { template: template.clone(), ticket: ticket.clone() };
        match self.ask(&request).await? {
            Answer::Bytes(pdf) => Ok(pdf),
            other => Err(other.unexpected()),
        }
    }

    /// [`crate::merge_typeset`] in a child.
    pub async fn merge_typeset(
        &self,
        template: &Typeset,
        ticket: &TicketDocument,
        after: &Continuation,
    ) -> Result<Piece, Error> {
        let (template, ticket, after) = (template.clone(), ticket.clone(), after.clone());
        self.piece(Request::MergeTypeset { template, ticket, after }).await
    }

    /// [`crate::merge_blob`] in a child.
    pub async fn merge(
        &self,
        blob: &[u8],
        tickets: &[TicketDocument],
        after: &Continuation,
    ) -> Result<Piece, Error> {
        let (blob, tickets, after) = (blob.to_vec(), tickets.to_vec(), after.clone());
        self.piece(Request::Merge { blob, tickets, after }).await
    }

    async fn piece(&self, request: Request) -> Result<Piece, Error> {
        match self.ask(&request).await? {
            Answer::Piece(piece) => Ok(piece),
            other => Err(other.unexpected()),
        }
    }

    /// [`crate::stamp_blob`] in a child.
    pub async fn stamp(&self, blob: &[u8], ticket: &TicketDocument) -> Result<Vec<u8>, Error> {
        let request = Request::Stamp { blob: blob.to_vec(), ticket: ticket.clone() };
        match self.ask(&request).await? {
            Answer::Bytes(pdf) => Ok(pdf),
            other => Err(other.unexpected()),
        }
    }

    /// A page of a PDF, from 0, as PNG with this many dots per inch.
    pub async fn preview_png(&self, pdf: &[u8], page: u32, dpi: f32) -> Result<Vec<u8>, Error> {
        match self.ask(&Request::Preview { pdf: pdf.to_vec(), page, dpi }).await? {
            Answer::Bytes(png) => Ok(png),
            other => Err(other.unexpected()),
        }
    }

    async fn ask(&self, request: &Request) -> Result<Answer, Error> {
        let Shared { program, limits, running, .. } = &*self.shared;
        let bytes = protocol::encode_request(request)?;
        // The semaphore is never closed.
        let _permit = running.acquire().await.map_err(|e| Error::Unavailable(e.to_string()))?;
        let mut idle = self.take_idle();
        let (process, answer) = loop {
            let reused = idle.is_some();
            let mut process = match idle.take() {
                Some(process) => process,
                None => Process::start(program, limits)?,
            };
            // Whoever leaves here early drops the process, which kills it.
            match tokio::time::timeout(limits.patience, process.exchange(&bytes)).await {
                // Its processor time is not used up: the machine is too busy, or somebody has stopped it.
                Err(_) => {
                    let waited = format!("no answer within {:?}", limits.patience);
                    return Err(Error::Unavailable(waited));
                }
                Ok(Ok(answer)) => break (process, protocol::decode_answer(&answer)?),
                Ok(Err(_)) => match process.why_it_ended(limits).await {
                    // Somebody shot it, perhaps while it was idle: that is not this template's fault.
                    Error::Crashed(how) if reused && how == process::KILLED => {}
                    why => return Err(why),
                },
            }
        };
        if process.answered() < MOST_REQUESTS {
            self.idle().push(process);
        }
        match answer {
            Answer::Mistakes(mistakes) => Err(Error::Template(mistakes)),
            answer => Ok(answer),
        }
    }

    fn take_idle(&self) -> Option<Process> {
        let mut idle = self.idle();
        while let Some(mut process) = idle.pop() {
            if process.is_alive() {
                return Some(process);
            }
        }
        None
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Process>> {
        // Whatever panicked while it held the list left it whole.
        self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The child: reads requests, runs templates, answers.

use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use stampede_render::Piece;

use super::protocol::{self, Answer, LONGEST, Request};
use crate::{Diagnostic, EventData, preview};

/// Typst refuses deep recursion by itself; deep nesting of other kinds needs room until it does.
const STACK: usize = 64 << 20;

/// What a child runs. Ends the process when its parent closes the pipe, whatever is being typeset.
pub fn sandbox_main() -> ! {
    let limit = |place| std::env::args().nth(place)?.parse().ok();
    limit_resources(limit(2));
    let seconds = limit(3);
    let (requests, work) = mpsc::channel::<Vec<u8>>();
    let worker = std::thread::Builder::new().stack_size(STACK).spawn(move || {
        for request in work {
            limit_time(seconds);
            if answer(&request).is_err() {
                std::process::exit(1);
            }
        }
    });
    if worker.is_err() {
        std::process::exit(1);
    }
    let mut input = io::stdin().lock();
    while let Ok(request) = read_message(&mut input) {
        if requests.send(request).is_err() {
            break;
        }
    }
    std::process::exit(0)
}

/// Memory as told; no core dumps, no files, few descriptors. What cannot be limited is left alone: the
/// parent's time limit still holds.
fn limit_resources(memory: Option<u64>) {
    let exactly = |most: u64| Rlimit { current: Some(most), maximum: Some(most) };
    if let Some(memory) = memory {
        let _ = setrlimit(Resource::Data, exactly(memory));
    }
    for resource in [Resource::Core, Resource::Fsize] {
        let _ = setrlimit(resource, exactly(0));
    }
    let _ = setrlimit(Resource::Nofile, exactly(16));
}

/// Gives the process so many seconds of processor time from now on. The kernel ends it when they are used up: it has
/// no other way to answer then.
fn limit_time(seconds: Option<u64>) {
    let Some(seconds) = seconds else { return };
    let used = clock_gettime(ClockId::ProcessCPUTime).tv_sec.max(0).unsigned_abs();
    // The kernel counts whole seconds.
    let current = Some(used + 1 + seconds);
    let _ = setrlimit(Resource::Cpu, Rlimit { current, ..getrlimit(Resource::Cpu) });
}

fn read_message(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut message = Vec::new();
    let read = input.take(u64::from(length)).read_to_end(&mut message)?;
    if read < length as usize { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(message) }
}

fn answer(request: &[u8]) -> io::Result<()> {
    let answer = match protocol::decode_request(request) {
        // A panic is a mistake of ours or of Typst; what it left behind is not used again.
        Ok(request) => catch_unwind(AssertUnwindSafe(|| run(request)))
            .map_err(|_| io::Error::other("the typesetter panicked"))?,
        Err(error) => Answer::Mistakes(vec![Diagnostic::error(None, error.to_string())]),
    };
    let bytes = match protocol::encode_answer(&answer) {
        Ok(bytes) => bytes,
        Err(error) => {
            let mistake = Diagnostic::error(None, format!("its result is too large: {error}"));
            protocol::encode_answer(&Answer::Mistakes(vec![mistake])).map_err(io::Error::other)?
        }
    };
    let mut output = io::stdout().lock();
    output.write_all(&(bytes.len() as u32).to_le_bytes())?;
    output.write_all(&bytes)?;
    output.flush()
}

fn run(request: Request) -> Answer {
    let bytes = |result: Result<Vec<u8>, Vec<Diagnostic>>| match result {
        Ok(bytes) => Answer::Bytes(bytes),
        Err(mistakes) => Answer::Mistakes(mistakes),
    };
    let piece = |result: Result<Piece, Vec<Diagnostic>>| match result {
        Ok(piece) => Answer::Piece(piece),
        Err(mistakes) => Answer::Mistakes(mistakes),
    };
    match request {
        Request::Warm => {
            for design in crate::shipped() {
                let _ = crate::compile(&design.bundle, &EventData::sample());
            }
            Answer::Warm
        }
        Request::Compile { bundle, event } => match crate::compile(&bundle, &event) {
            Ok(published) => Answer::Published(published),
            Err(mistakes) => Answer::Mistakes(mistakes),
        },
        Request::Mistakes { bundle, event } => Answer::Mistakes(crate::mistakes(&bundle, &event)),
        Request::Typeset { template, ticket } => bytes(crate::typeset(&template, &ticket)),
        Request::MergeTypeset { template, ticket, after } => {
            piece(crate::merge_typeset(&template, &ticket, &after))
        }
        Request::Merge { blob, tickets, after } => {
            piece(crate::merge_blob(&blob, &tickets, &after))
        }
        Request::Stamp { blob, ticket } => bytes(crate::stamp_blob(&blob, &ticket)),
        Request::Preview { pdf, page, dpi } => bytes(preview::png(pdf, page, dpi)),
    }
}

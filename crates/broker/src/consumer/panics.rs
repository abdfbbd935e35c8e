//! Where a handler panicked: its stack trace goes into the job's record.
//!
//! A trace can be taken only inside the process's panic hook, so this adds one in front of the one
//! that is there: it keeps the trace of the thread's last panic and passes on.

use std::backtrace::Backtrace;
use std::cell::RefCell;
use std::sync::Once;

/// Lines of a trace that are kept; what is above the handler is ours and the runtime's.
const LINES: usize = 60;

thread_local! {
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// From now on, [`describe`] knows where a panic came from.
pub(super) fn keep_traces() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let next = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let trace = Backtrace::force_capture().to_string();
            let lines: Vec<&str> = trace.lines().take(LINES).collect();
            let place = panic.location().map(ToString::to_string).unwrap_or_default();
            let text = format!("    at {place}\n{}", lines.join("\n"));
            LAST.with(|last| *last.borrow_mut() = Some(text));
            next(panic);
        }));
    });
}

/// The message of a panic that was just caught on this thread, and its stack trace.
pub(super) fn describe(panic: &(dyn std::any::Any + Send)) -> (String, String) {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let message = format!("panicked: {}", text.unwrap_or("without a message"));
    let trace = LAST.with(|last| last.borrow_mut().take()).unwrap_or_default();
    let described = format!("{message}\n{trace}");
    (message, described)
}

//! Where a handler panicked: its stack trace goes into the job's record.
//!
//! A trace can be taken only inside the process's panic hook, so this adds one in front of the one
//! that is there: it keeps the trace of the thread's last panic and passes on.

use std::backtrace::Backtrace;
use std::cell::RefCell;
use std::sync::Once;

/// Lines of a trace that are kept.
const LINES: usize = 40;

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
            let place = panic.location().map(ToString::to_string).unwrap_or_default();
            let text = format!("    at {place}\n{}", of_the_handler(&trace).join("\n"));
            LAST.with(|last| *last.borrow_mut() = Some(text));
            next(panic);
        }));
    });
}

/// The part of a trace that is the handler's: what lies before is the machinery of panics, what comes
/// after is the consumer's and the runtime's.
fn of_the_handler(trace: &str) -> Vec<&str> {
    let lines: Vec<&str> = trace.lines().collect();
    let machinery = |line: &&str| {
        line.contains("core::panicking::") || line.contains("std::panicking::begin_panic")
    };
    // Each frame has a second line that says where it is.
    let begin = lines.iter().rposition(machinery).map_or(0, |at| at + 2);
    let handlers = lines.get(begin..).unwrap_or_default();
    let ours = |line: &&str| line.contains("catch_unwind") || line.contains("AssertUnwindSafe");
    let end = handlers.iter().position(ours).unwrap_or(handlers.len());
    handlers[..end.min(LINES)].to_vec()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_shows_the_handler_and_nothing_else() {
        let trace = "   0: hook\n      at a.rs\n   1: core::panicking::panic_fmt\n      at b.rs\n   2: mine\n      at c.rs\n   3: AssertUnwindSafe::poll\n      at d.rs";
        assert_eq!(of_the_handler(trace), ["   2: mine", "      at c.rs"]);
        assert!(of_the_handler("").is_empty());
        assert_eq!(of_the_handler("   0: core::panicking::panic_fmt"), [""; 0]);
    }
}

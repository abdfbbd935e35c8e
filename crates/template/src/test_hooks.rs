//! Hooks of the test harness. Release builds ignore them.
//!
//! | variable | effect |
//! |---|---|
//! | `STAMPEDE_POISON=text` | stamping a ticket with this text in its name ends the process, as a template would that gets past all checks |

use stampede_model::TicketDocument;

const POISON: &str = "STAMPEDE_POISON";

/// Variables that a child of the sandbox gets.
pub(crate) fn passed_on() -> Option<(&'static str, String)> {
    poison().map(|text| (POISON, text))
}

/// Ends the process if the harness calls this ticket poisonous.
pub(crate) fn die_of_poison(ticket: &TicketDocument) {
    if poison().is_some_and(|text| ticket.name.contains(&text)) {
        std::process::abort();
    }
}

fn poison() -> Option<String> {
    if !cfg!(debug_assertions) {
        return None;
    }
    std::env::var(POISON).ok().filter(|text| !text.is_empty())
}

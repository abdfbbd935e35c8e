//! What is printed for the person at the terminal.
//!
//! The macros below replace those of the standard library in this crate: texts of other people (names of queues,
//! errors of jobs, mistakes of templates) may hold escape sequences, and these must not reach the terminal. Line
//! breaks stay, because a command prints several lines at once; [`Printable::line`](stampede_model::Printable::line)
//! escapes them where one value must stay on its line (errors, cells of a table).
//!
//! JSON stays the same JSON: the escapes are those of JSON.

/// Prints to standard output; control characters other than line breaks and tabs are escaped.
macro_rules! print {
    ($($text:tt)*) => {
        std::print!("{}", stampede_model::Printable::lines(format_args!($($text)*)))
    };
}

/// Prints a line to standard output; control characters other than line breaks and tabs are escaped.
macro_rules! println {
    () => { std::println!() };
    ($($text:tt)*) => {
        std::println!("{}", stampede_model::Printable::lines(format_args!($($text)*)))
    };
}

/// Prints a line to standard error; control characters other than line breaks and tabs are escaped.
macro_rules! eprintln {
    ($($text:tt)*) => {
        std::eprintln!("{}", stampede_model::Printable::lines(format_args!($($text)*)))
    };
}

//! Native functions: calling Rust from Lua, and raising Rust's errors in Lua.
//!
//! ```text
//!   Lua ─▶ entry, made by native! ─▶ enter ─▶ run ─▶ the function, over a Stack
//!                                      │        └── catches panics, checks memory, pushes the error
//!                                      └── lua_error, when nothing in Rust is left to drop
//! ```

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use mlua_sys as ffi;

use super::memory::Mode;
use super::stack::Stack;
use super::state::State;

/// An error to raise in Lua.
#[derive(Debug)]
pub(super) enum Raise {
    /// A message with the location in the script, like `luaL_error`.
    Here(String),
    /// A message without a location.
    Plain(String),
    /// A bad argument, by number, like `luaL_argerror`.
    Argument(usize, String),
    /// An error of the server: a table with the field `err`.
    Reply(String),
    /// The value on top of the stack.
    Top,
}

/// Runs a native function for Lua and returns the number of its results, or raises its error.
///
/// # Safety
/// Only as the body of a C function that Lua calls, see [`native!`](super::native).
#[allow(unsafe_code)]
pub(super) unsafe fn enter(
    lua: *mut ffi::lua_State,
    native: impl FnOnce(&mut Stack<'_>) -> Result<usize, Raise>,
) -> c_int {
    // SAFETY: Lua gives a live state. Nothing with a destructor is left when `lua_error` jumps.
    unsafe {
        match run(lua, native) {
            Some(results) => results,
            None => ffi::lua_error(lua),
        }
    }
}

/// Runs a native function; `None` means that an error is on top of the stack.
///
/// # Safety
/// As [`enter`].
#[allow(unsafe_code)]
unsafe fn run(
    lua: *mut ffi::lua_State,
    native: impl FnOnce(&mut Stack<'_>) -> Result<usize, Raise>,
) -> Option<c_int> {
    // SAFETY: Lua gives a live state of a VM, whose state outlives it; the allocator becomes lenient.
    let (state, before, mut stack) = unsafe {
        let state = State::of(lua);
        let before = state.memory.set_mode(Mode::Lenient);
        (state, before, Stack::new(lua, state))
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| native(&mut stack))).unwrap_or_else(|panic| {
        state.keep_panic(panic);
        Err(Raise::Plain("the server failed".to_owned()))
    });
    let outcome = match outcome {
        Ok(_) if state.memory.is_over() && !state.collect(lua) => {
            Err(Raise::Plain("not enough memory".to_owned()))
        }
        outcome => outcome,
    };
    let results = match outcome {
        Ok(results) => Some(results as c_int),
        Err(raise) => {
            push_error(&mut stack, raise);
            None
        }
    };
    state.memory.set_mode(before);
    results
}

/// Pushes an error.
fn push_error(stack: &mut Stack<'_>, raise: Raise) {
    // The function may have filled the stack.
    stack.ensure(4);
    match raise {
        Raise::Top => {}
        Raise::Plain(text) => stack.push_bytes(text.as_bytes()),
        Raise::Here(text) => {
            let text = match stack.location(1) {
                Some(place) if place.line > 0 => {
                    format!("{}:{}: {text}", place.short_source, place.line)
                }
                _ => text,
            };
            stack.push_bytes(text.as_bytes());
        }
        Raise::Argument(index, text) => {
            let place = stack.location(0);
            let name = place.as_ref().and_then(|place| place.name.as_deref()).unwrap_or("?");
            let text = match (index, place.as_ref().is_some_and(|place| place.is_method)) {
                (1, true) => format!("calling '{name}' on bad self ({text})"),
                (index, true) => format!("bad argument #{} to '{name}' ({text})", index - 1),
                (index, false) => format!("bad argument #{index} to '{name}' ({text})"),
            };
            push_error(stack, Raise::Here(text));
        }
        Raise::Reply(text) => {
            stack.push_table(0, 1);
            stack.push_bytes(text.as_bytes());
            stack.raw_set_field(-2, "err");
        }
    }
}

/// Makes a function that Lua can call from a `fn(&mut Stack<'_>) -> Result<usize, Raise>`.
macro_rules! native {
    ($function:expr) => {{
        #[allow(unsafe_code)]
        unsafe extern "C-unwind" fn entry(lua: *mut ::mlua_sys::lua_State) -> ::std::ffi::c_int {
            // SAFETY: this is a C function that only Lua calls.
            unsafe { $crate::lua::native::enter(lua, $function) }
        }
        entry as ::mlua_sys::lua_CFunction
    }};
}
pub(super) use native;

//! The allocator of the Lua VM, with a memory limit.
//!
//! Lua reports a refused allocation with an error that jumps (`longjmp`) over every frame up to the
//! next protected call. That is right while Lua's own code runs. It must never happen while a Rust
//! function runs, because its destructors would be skipped. So the allocator has two modes:
//!
//! - **strict**, while Lua code runs: it refuses to exceed the limit, and the script gets an error;
//! - **lenient**, while Rust code uses the Lua API: it never refuses. An excess is detected when the Rust
//!   function returns ([`Memory::is_over`]), by code that can raise safely.
//!
//! The memory that one Rust function can allocate is bounded by its own checks (see `budget`), so the
//! limit is exceeded by at most one reply or one decoded document.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error, realloc};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;

/// Lua needs blocks aligned for any C type.
const ALIGN: usize = 16;

/// The behaviour of the allocator at the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Refuses: Lua code runs.
    Strict,
    /// Never refuses: Rust code runs.
    Lenient,
}

/// The number of bytes in use, and the limit.
#[derive(Debug)]
pub(super) struct Memory {
    used: Cell<usize>,
    limit: Cell<usize>,
    mode: Cell<Mode>,
}

impl Memory {
    /// A lenient allocator, until [`Memory::set_mode`] is called.
    pub(super) fn new() -> Self {
        Self { used: Cell::new(0), limit: Cell::new(usize::MAX), mode: Cell::new(Mode::Lenient) }
    }

    /// The number of bytes used by the VM.
    pub(super) fn used(&self) -> usize {
        self.used.get()
    }

    /// Sets the limit.
    pub(super) fn set_limit(&self, bytes: usize) {
        self.limit.set(bytes);
    }

    /// Whether the limit is exceeded.
    pub(super) fn is_over(&self) -> bool {
        self.used.get() > self.limit.get()
    }

    /// The number of bytes that a Rust function may still allocate, inside or outside the VM.
    pub(super) fn budget(&self) -> usize {
        self.limit.get().saturating_sub(self.used.get())
    }

    /// Sets the mode and returns the previous one.
    pub(super) fn set_mode(&self, mode: Mode) -> Mode {
        self.mode.replace(mode)
    }

    fn may_grow(&self, by: usize) -> bool {
        self.mode.get() == Mode::Lenient || self.used.get().saturating_add(by) <= self.limit.get()
    }
}

/// Lua's allocator (`lua_Alloc`) over Rust's.
///
/// # Safety
/// Only for Lua: `ud` points to a [`Memory`] that outlives the VM and is only used through shared
/// references, and `block` is null or a block of `old` bytes that this function gave.
#[allow(unsafe_code)]
pub(super) unsafe extern "C" fn allocate(
    ud: *mut c_void,
    block: *mut c_void,
    old: usize,
    new: usize,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    let memory = unsafe { &*ud.cast::<Memory>() };
    let old = if block.is_null() { 0 } else { old };
    let Ok(layout) = Layout::from_size_align(new, ALIGN) else { return ptr::null_mut() };
    // SAFETY: `old` is the size that this block was given with, by the caller's promise.
    let old_layout = unsafe { Layout::from_size_align_unchecked(old, ALIGN) };
    if new > old && !memory.may_grow(new - old) {
        return ptr::null_mut();
    }
    // SAFETY: no layout of size zero reaches `alloc` or `realloc`, and `block` belongs to `old_layout`.
    let result = unsafe {
        match (old, new) {
            (0, 0) => return ptr::null_mut(),
            (_, 0) => {
                dealloc(block.cast(), old_layout);
                memory.used.set(memory.used.get() - old);
                return ptr::null_mut();
            }
            (0, _) => alloc(layout),
            (_, _) => realloc(block.cast(), old_layout, new),
        }
    };
    if result.is_null() {
        // Lua must not jump out of a Rust frame, so the process aborts, as for any Rust allocation.
        handle_alloc_error(layout);
    }
    memory.used.set(memory.used.get() - old + new);
    result.cast()
}

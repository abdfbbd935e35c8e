//! The memory that the Lua VM may use: an allocator with a limit.
//!
//! Lua answers a refused allocation with an error that jumps (`longjmp`) over every frame up to the
//! next protected call. That is right while Lua's own code runs, and must never happen while a
//! function written in Rust runs, whose destructors would be skipped. So the allocator has two moods:
//!
//! - **strict**, while Lua code runs: past the limit it refuses, and the script gets an error;
//! - **lenient**, while Rust code uses the Lua API: it never refuses. What Rust made too much is
//!   noticed when the Rust function returns ([`Memory::is_over`]), by code that can raise safely.
//!
//! What one Rust function can make is bounded by its own checks (see `budget`), so the limit is soft
//! by at most one reply or one decoded document.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error, realloc};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;

/// Lua wants its blocks aligned for any C type.
const ALIGN: usize = 16;

/// How many bytes are in use, and how many may be.
#[derive(Debug)]
pub(super) struct Memory {
    used: Cell<usize>,
    limit: Cell<usize>,
    strict: Cell<bool>,
}

impl Memory {
    /// An allocator that never refuses, until [`Memory::strictly`] is called.
    pub(super) fn new() -> Self {
        Self { used: Cell::new(0), limit: Cell::new(usize::MAX), strict: Cell::new(false) }
    }

    /// Bytes in use by the VM.
    pub(super) fn used(&self) -> usize {
        self.used.get()
    }

    /// Sets the limit for what runs next.
    pub(super) fn set_limit(&self, bytes: usize) {
        self.limit.set(bytes);
    }

    /// Whether more is in use than is allowed.
    pub(super) fn is_over(&self) -> bool {
        self.used.get() > self.limit.get()
    }

    /// How much a Rust function may still build, inside or outside the VM.
    pub(super) fn budget(&self) -> usize {
        self.limit.get().saturating_sub(self.used.get())
    }

    /// Changes the mood and says what it was: `true` is strict.
    pub(super) fn strictly(&self, strict: bool) -> bool {
        self.strict.replace(strict)
    }

    fn may_grow(&self, by: usize) -> bool {
        !self.strict.get() || self.used.get().saturating_add(by) <= self.limit.get()
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
        // Lua may not jump out of a Rust frame, so this is the end, as for any Rust allocation.
        handle_alloc_error(layout);
    }
    memory.used.set(memory.used.get() - old + new);
    result.cast()
}

//! The Lua stack as functions written in Rust see it.
//!
//! A native function, made with `native!`, gets a [`Stack`]: its arguments are at 1, 2, …, what it pushes comes after,
//! and it returns how many of the topmost values are its results. The functions of this file and folder are
//! safe to call because of four facts, which whoever changes this folder must keep:
//!
//! 1. **Nothing here raises a Lua error.** Only raw access is offered (no metamethods), the allocator
//!    is lenient while Rust runs (`memory.rs`), and no finalizer can run, because scripts have no
//!    `newproxy` and we make no userdata. So no `longjmp` ever crosses a frame with destructors. An
//!    error is a returned [`Raise`]; `native.rs` raises it when everything in Rust has been dropped.
//! 2. **Nothing here runs Lua code**, so a native function is never re-entered.
//! 3. **Arguments stay.** `pop` refuses to go below them, which is why [`Stack::text`] may lend out
//!    an argument for the whole call; `drop_args` refuses after that.
//! 4. **A panic does not cross Lua.** `native.rs` catches it, ends the script, and the VM lets it go on
//!    when Lua has unwound.
//!
//! Every push needs a free slot: twenty are there at the beginning, [`Stack::ensure`] makes more.

mod location;
mod tables;

use std::ffi::{c_int, c_void};
use std::slice;

use mlua_sys as ffi;

use super::native::Raise;
use super::numeric;
use super::state::State;

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    None,
    Nil,
    Boolean,
    LightUserdata,
    Number,
    String,
    Table,
    Function,
    Userdata,
    Thread,
}

impl Kind {
    /// Lua's name of the type.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "no value",
            Self::Nil => "nil",
            Self::Boolean => "boolean",
            Self::LightUserdata | Self::Userdata => "userdata",
            Self::Number => "number",
            Self::String => "string",
            Self::Table => "table",
            Self::Function => "function",
            Self::Thread => "thread",
        }
    }
}

/// The stack of one call.
pub(super) struct Stack<'a> {
    lua: *mut ffi::lua_State,
    state: &'a State,
    args: c_int,
    lent: bool,
}

#[allow(unsafe_code)]
impl<'a> Stack<'a> {
    /// The stack of the running native function; the values on it now are its arguments.
    ///
    /// # Safety
    /// `lua` is a live state of the VM that `state` belongs to, and the allocator is lenient for `'a`.
    pub(super) unsafe fn new(lua: *mut ffi::lua_State, state: &'a State) -> Self {
        // SAFETY: the caller's promise.
        let args = unsafe { ffi::lua_gettop(lua) };
        Self { lua, state, args, lent: false }
    }

    /// The state shared by all native functions.
    pub(super) fn state(&self) -> &'a State {
        self.state
    }

    /// The number of arguments.
    pub(super) fn args(&self) -> usize {
        self.args as usize
    }

    /// The number of values.
    pub(super) fn top(&self) -> usize {
        // SAFETY: reads a counter.
        unsafe { ffi::lua_gettop(self.lua) as usize }
    }

    /// Makes room for `slots` pushes; `false` at Lua's limit of 8,000.
    pub(super) fn ensure(&mut self, slots: usize) -> bool {
        // SAFETY: reports the limit instead of raising; growing cannot fail (fact 1).
        slots < 8000 && unsafe { ffi::lua_checkstack(self.lua, slots as c_int) != 0 }
    }

    /// The type of the value.
    pub(super) fn kind(&self, index: c_int) -> Kind {
        // SAFETY: `lua_type` takes every index and only reads.
        match unsafe { ffi::lua_type(self.lua, index) } {
            ffi::LUA_TNIL => Kind::Nil,
            ffi::LUA_TBOOLEAN => Kind::Boolean,
            ffi::LUA_TLIGHTUSERDATA => Kind::LightUserdata,
            ffi::LUA_TNUMBER => Kind::Number,
            ffi::LUA_TSTRING => Kind::String,
            ffi::LUA_TTABLE => Kind::Table,
            ffi::LUA_TFUNCTION => Kind::Function,
            ffi::LUA_TUSERDATA => Kind::Userdata,
            ffi::LUA_TTHREAD => Kind::Thread,
            _ => Kind::None,
        }
    }

    /// The number, also from a numeric string.
    pub(super) fn number(&self, index: c_int) -> Option<f64> {
        // SAFETY: both only read.
        unsafe {
            (ffi::lua_isnumber(self.lua, index) != 0).then(|| ffi::lua_tonumber(self.lua, index))
        }
    }

    /// Whether the value is true in Lua's sense.
    pub(super) fn truth(&self, index: c_int) -> bool {
        // SAFETY: only reads.
        unsafe { ffi::lua_toboolean(self.lua, index) != 0 }
    }

    /// Whether the value is the null pointer, which is `cjson.null`.
    pub(super) fn is_null_pointer(&self, index: c_int) -> bool {
        // SAFETY: only reads.
        self.kind(index) == Kind::LightUserdata
            && unsafe { ffi::lua_touserdata(self.lua, index).is_null() }
    }

    /// An address that identifies this table, function or thread.
    pub(super) fn address(&self, index: c_int) -> *const c_void {
        // SAFETY: only reads.
        unsafe { ffi::lua_topointer(self.lua, index) }
    }

    /// The bytes of a string, valid until the next push or pop.
    pub(super) fn bytes(&self, index: c_int) -> Option<&[u8]> {
        if self.kind(index) != Kind::String {
            return None;
        }
        let mut len = 0;
        // SAFETY: a string is not converted; it lives while it is on the stack, and only functions
        // that take `&mut self` remove it.
        unsafe {
            let start = ffi::lua_tolstring(self.lua, index, &mut len);
            Some(slice::from_raw_parts(start.cast(), len))
        }
    }

    /// Argument `index` as a string, valid for the whole call; a number is converted, as in Lua.
    pub(super) fn text(&mut self, index: usize) -> Result<&'a [u8], Raise> {
        let slot = index as c_int;
        if slot > self.args || !matches!(self.kind(slot), Kind::String | Kind::Number) {
            return Err(self.wrong_type(index, "string"));
        }
        self.lent = true;
        let mut len = 0;
        // SAFETY: converts a number in place, which cannot fail (fact 1); the argument stays where it
        // is until the call returns (fact 3), so the bytes live as long as the call.
        unsafe {
            let start = ffi::lua_tolstring(self.lua, slot, &mut len);
            Ok(slice::from_raw_parts(start.cast(), len))
        }
    }

    /// Argument `index` as a number.
    pub(super) fn check_number(&self, index: usize) -> Result<f64, Raise> {
        self.number(index as c_int).ok_or_else(|| self.wrong_type(index, "number"))
    }

    /// Argument `index` as an integer, truncated like in C.
    pub(super) fn check_integer(&self, index: usize) -> Result<i64, Raise> {
        self.check_number(index).map(numeric::to_i64)
    }

    /// Argument `index` as an integer, or `default` if it is missing.
    pub(super) fn optional_integer(&self, index: usize, default: i64) -> Result<i64, Raise> {
        match self.kind(index as c_int) {
            Kind::None | Kind::Nil => Ok(default),
            _ => self.check_integer(index),
        }
    }

    /// The error for an argument of a wrong type.
    pub(super) fn wrong_type(&self, index: usize, expected: &str) -> Raise {
        let found = self.kind(index as c_int).name();
        Raise::Argument(index, format!("{expected} expected, got {found}"))
    }

    pub(super) fn push_nil(&mut self) {
        // SAFETY: a slot is free.
        unsafe { ffi::lua_pushnil(self.lua) }
    }

    pub(super) fn push_bool(&mut self, value: bool) {
        // SAFETY: a slot is free.
        unsafe { ffi::lua_pushboolean(self.lua, value.into()) }
    }

    pub(super) fn push_number(&mut self, value: f64) {
        // SAFETY: a slot is free.
        unsafe { ffi::lua_pushnumber(self.lua, value) }
    }

    pub(super) fn push_null_pointer(&mut self) {
        // SAFETY: a slot is free; the pointer is never followed.
        unsafe { ffi::lua_pushlightuserdata(self.lua, std::ptr::null_mut()) }
    }

    pub(super) fn push_bytes(&mut self, value: &[u8]) {
        // SAFETY: a slot is free, Lua copies the bytes, and allocating cannot fail (fact 1).
        unsafe { ffi::lua_pushlstring_(self.lua, value.as_ptr().cast(), value.len()) }
    }

    /// Pushes a copy of a value.
    pub(super) fn push_copy(&mut self, index: c_int) {
        // SAFETY: a slot is free.
        unsafe { ffi::lua_pushvalue(self.lua, index) }
    }

    /// Pushes a native function.
    pub(super) fn push_function(&mut self, function: ffi::lua_CFunction) {
        // SAFETY: a slot is free, and allocating cannot fail (fact 1).
        unsafe { ffi::lua_pushcclosure(self.lua, function, 0) }
    }

    /// Pops `upvalues` values and pushes a native closure over them.
    pub(super) fn push_closure(&mut self, function: ffi::lua_CFunction, upvalues: c_int) {
        // SAFETY: callers have pushed the values; allocating cannot fail (fact 1).
        unsafe { ffi::lua_pushcclosure(self.lua, function, upvalues) }
    }

    /// An upvalue of the running function as a string, valid for the whole call; empty if it is not
    /// one.
    pub(super) fn upvalue_text(&self, n: c_int) -> &'a [u8] {
        let index = ffi::lua_upvalueindex(n);
        let mut len = 0;
        if self.kind(index) != Kind::String {
            return b"";
        }
        // SAFETY: the running function keeps the string, which nothing here replaces.
        unsafe {
            let start = ffi::lua_tolstring(self.lua, index, &mut len);
            slice::from_raw_parts(start.cast(), len)
        }
    }

    /// An upvalue of the running function as a number; 0 if it is not one.
    pub(super) fn upvalue_number(&self, n: c_int) -> f64 {
        self.number(ffi::lua_upvalueindex(n)).unwrap_or_default()
    }

    /// Replaces a numeric upvalue of the running function.
    pub(super) fn set_upvalue_number(&mut self, n: c_int, value: f64) {
        assert_eq!(self.kind(ffi::lua_upvalueindex(n)), Kind::Number, "only numbers are replaced");
        self.push_number(value);
        // SAFETY: the upvalue exists, and no string that was lent out is replaced.
        unsafe { ffi::lua_replace(self.lua, ffi::lua_upvalueindex(n)) }
    }

    /// Pops `count` values that this call has pushed.
    pub(super) fn pop(&mut self, count: usize) {
        let top = self.top();
        assert!(count <= top && top - count >= self.args(), "a native function pops its arguments");
        // SAFETY: shrinks the stack within what was pushed.
        unsafe { ffi::lua_settop(self.lua, (top - count) as c_int) }
    }

    /// Turns the last argument into an ordinary value, which can be popped.
    pub(super) fn own_top(&mut self) {
        assert!(
            !self.lent && self.args > 0,
            "a native function takes an argument that it has lent out"
        );
        self.args -= 1;
    }

    /// Pops a value into a slot that this call has pushed.
    pub(super) fn replace(&mut self, slot: usize) {
        assert!(
            slot > self.args() && slot < self.top(),
            "a native function replaces its arguments"
        );
        // SAFETY: the slot exists and is not an argument.
        unsafe { ffi::lua_replace(self.lua, slot as c_int) }
    }

    /// Removes the arguments, to make room for results.
    pub(super) fn drop_args(&mut self) {
        assert!(!self.lent, "a native function drops arguments that it has lent out");
        self.args = 0;
        // SAFETY: nothing refers to the values any more.
        unsafe { ffi::lua_settop(self.lua, 0) }
    }

    fn absolute(&self, index: c_int) -> c_int {
        if index < 0 && index > ffi::LUA_REGISTRYINDEX {
            self.top() as c_int + index + 1
        } else {
            index
        }
    }
}

//! Raw access to tables, without metamethods, which cannot raise.

use std::ffi::c_int;

use mlua_sys as ffi;

use super::{Kind, Stack};
use crate::lua::native::Raise;

#[allow(unsafe_code)]
impl Stack<'_> {
    /// The raw length of a table.
    pub(in crate::lua) fn raw_len(&self, index: c_int) -> usize {
        // SAFETY: only reads.
        unsafe { ffi::lua_objlen(self.lua, index) }
    }

    /// Pushes a new table with space for `array` array entries and `fields` others.
    pub(in crate::lua) fn push_table(&mut self, array: usize, fields: usize) {
        // The preallocation is limited: the number may come from hostile input.
        let room = |wanted: usize| wanted.min(1024) as c_int;
        // SAFETY: a slot is free, and allocating cannot fail (fact 1).
        unsafe { ffi::lua_createtable(self.lua, room(array), room(fields)) }
    }

    /// Pushes `table[n]`.
    pub(in crate::lua) fn raw_get_at(&mut self, table: c_int, n: usize) {
        // SAFETY: callers give the index of a table; a slot is free.
        unsafe { ffi::lua_rawgeti_(self.lua, table, n as c_int) }
    }

    /// Pushes `table[n]`; `n` may be zero or negative.
    pub(in crate::lua) fn raw_get_index(&mut self, table: c_int, n: c_int) {
        // SAFETY: callers give the index of a table; a slot is free.
        unsafe { ffi::lua_rawgeti_(self.lua, table, n) }
    }

    /// Pushes `table[name]`.
    pub(in crate::lua) fn raw_get_field(&mut self, table: c_int, name: &str) {
        let table = self.absolute(table);
        self.push_bytes(name.as_bytes());
        // SAFETY: callers give the index of a table; the key gives its slot to the value.
        unsafe { ffi::lua_rawget_(self.lua, table) }
    }

    /// Pops a value into `table[n]`.
    pub(in crate::lua) fn raw_set_at(&mut self, table: c_int, n: usize) {
        // SAFETY: callers give the index of a table; allocating cannot fail (fact 1).
        unsafe { ffi::lua_rawseti_(self.lua, table, n as c_int) }
    }

    /// Pops a value and the key below it into `table`; `Err` if the key is nil or NaN.
    pub(in crate::lua) fn raw_set(&mut self, table: c_int) -> Result<(), Raise> {
        match self.kind(-2) {
            Kind::Nil => return Err(Raise::Plain("table index is nil".to_owned())),
            Kind::Number if self.number(-2).is_some_and(f64::is_nan) => {
                return Err(Raise::Plain("table index is NaN".to_owned()));
            }
            // SAFETY: callers give the index of a table; allocating cannot fail (fact 1).
            _ => unsafe { ffi::lua_rawset(self.lua, table) },
        }
        Ok(())
    }

    /// Pops a value into `table[name]`.
    pub(in crate::lua) fn raw_set_field(&mut self, table: c_int, name: &str) {
        let table = self.absolute(table);
        self.push_bytes(name.as_bytes());
        // SAFETY: swaps the two values on top, then as `raw_set` with a string as its key.
        unsafe {
            ffi::lua_insert(self.lua, -2);
            ffi::lua_rawset(self.lua, table);
        }
    }

    /// Pops a key and pushes the next key and its value; at the end pushes nothing and returns
    /// `false`.
    pub(in crate::lua) fn next(&mut self, table: c_int) -> bool {
        // SAFETY: the key came from this table, which nothing changes meanwhile (fact 2), so Lua
        // finds it and does not raise; a slot is free for the value.
        unsafe { ffi::lua_next(self.lua, table) != 0 }
    }
}

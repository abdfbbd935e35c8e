//! The location of a call in a script.

use std::ffi::{CStr, c_char, c_int};
use std::mem::MaybeUninit;

use mlua_sys as ffi;

use super::Stack;

/// The source and line of a function.
#[derive(Debug)]
pub(in crate::lua) struct Location {
    pub(in crate::lua) name: Option<String>,
    pub(in crate::lua) is_method: bool,
    pub(in crate::lua) is_native: bool,
    pub(in crate::lua) source: String,
    pub(in crate::lua) short_source: String,
    pub(in crate::lua) line: c_int,
}

#[allow(unsafe_code)]
impl Stack<'_> {
    /// The location of the function at `level`: 0 is the running function, 1 its caller.
    pub(in crate::lua) fn location(&self, level: c_int) -> Option<Location> {
        let mut record = MaybeUninit::<ffi::lua_Debug>::zeroed();
        // SAFETY: Lua fills the record; without `f` and `L` nothing is pushed and nothing raised. The
        // strings are terminated, and copied before anything can free them.
        unsafe {
            if ffi::lua_getstack(self.lua, level, record.as_mut_ptr()) == 0 {
                return None;
            }
            ffi::lua_getinfo(self.lua, c"nSl".as_ptr(), record.as_mut_ptr());
            let record = record.assume_init();
            let owned = |text: *const c_char| {
                (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
            };
            Some(Location {
                name: owned(record.name),
                is_method: owned(record.namewhat).as_deref() == Some("method"),
                is_native: owned(record.what).as_deref() == Some("C"),
                source: owned(record.source).unwrap_or_default(),
                short_source: owned(record.short_src.as_ptr()).unwrap_or_default(),
                line: record.currentline,
            })
        }
    }
}

//! The globals of scripts: those of Redis 7.0, all read-only.
//!
//! Redis patches Lua so that a table can be read-only. This crate uses stock Lua and puts an empty
//! *proxy* table before every shared table, with a metatable that reads through and refuses writes:
//!
//! ```text
//!   script ─▶ proxy of _G (empty) ─__index─▶ globals ─__index─▶ "nonexistent global variable"
//!                  │ __newindex                 ├─ string ─▶ proxy ─__index─▶ string library
//!                  ▼                            ├─ redis  ─▶ proxy ─__index─▶ …
//!      "Attempt to modify a readonly table"     └─ KEYS, ARGV (plain tables, new for every run)
//! ```
//!
//! Functions that bypass metatables (`rawset`, `next`, `table.insert`, …) are replaced by functions that
//! know proxies (`builtins.rs`). Others are replaced because stock Lua 5.1 is unsafe or unbounded there:
//! `load` and `loadstring` (bytecode; chunk names that the parser does not keep alive, CVE-2025-49844),
//! `unpack` (overflow, CVE-2025-46817), `string.rep` and `table.insert` (loops of 2^31 steps that no time
//! limit interrupts), `collectgarbage` (a script could turn it off for all scripts), `xpcall` (its handler
//! could not be stopped), and patterns (see `pattern.rs`). `pcall` returns the text of a Redis error, as
//! in Redis.

use std::ffi::{c_int, c_void};

use mlua_sys as ffi;

use super::native::{Raise, native};
use super::stack::Stack;
use super::state::State;
use super::{bits, builtins, json, msgpack, random, redis, strings, structs};

/// The error for an attempt to change a shared table.
pub(super) const READ_ONLY: &str = "Attempt to modify a readonly table";

/// Globals of stock Lua that Redis does not have.
const REMOVED: [&str; 11] = [
    "dofile", "getfenv", "loadfile", "module", "newproxy", "package", "print", "require",
    "setfenv", "os", "io",
];

/// Its address is a key that only the metatables of proxies have.
static MARK: u8 = 0;

/// Sets up a new Lua state; returns registry references to the real globals and the error handler.
///
/// # Safety
/// `lua` is new, belongs to `state`, and its allocator is lenient.
#[allow(unsafe_code)]
pub(super) unsafe fn set_up_globals(
    lua: *mut ffi::lua_State,
    state: &State,
    handler: ffi::lua_CFunction,
    version: &str,
) -> (c_int, c_int) {
    // SAFETY: the libraries and everything below raise only for lack of memory, which cannot be. The
    // stack holds the globals at 1, and never more than twenty values.
    unsafe {
        for open in [ffi::luaopen_base, ffi::luaopen_table, ffi::luaopen_string, ffi::luaopen_math]
        {
            ffi::lua_pushcclosure(lua, open, 0);
            ffi::lua_call(lua, 0, 0);
        }
        ffi::lua_pushvalue(lua, ffi::LUA_GLOBALSINDEX);
        let mut stack = Stack::new(lua, state);
        for name in REMOVED {
            stack.push_nil();
            stack.raw_set_field(1, name);
        }
        replace_builtins(lua, &mut stack);
        type Library = (&'static str, fn(&mut Stack<'_>));
        let libraries: [Library; 4] = [
            ("cjson", json::push_library),
            ("cmsgpack", msgpack::push_library),
            ("struct", structs::push_library),
            ("bit", bits::push_library),
        ];
        for (name, push) in libraries {
            push(&mut stack);
            stack.raw_set_field(1, name);
        }
        redis::push_library(&mut stack, version);
        stack.raw_set_field(1, "redis");
        stack.push_function(handler);
        stack.push_copy(-1);
        let handler = ffi::luaL_ref(lua, ffi::LUA_REGISTRYINDEX);
        stack.raw_set_field(1, "__redis__err__handler");
        for name in
            ["string", "table", "math", "coroutine", "redis", "cjson", "cmsgpack", "struct", "bit"]
        {
            stack.raw_get_field(1, name);
            push_proxy(lua);
            stack.raw_set_field(1, name);
            stack.pop(1);
        }
        protect_strings(lua, &mut stack);
        // The globals themselves: a missing global raises, and the proxy becomes `_G`.
        stack.push_table(0, 1);
        stack.push_function(native!(missing_global));
        stack.raw_set_field(-2, "__index");
        ffi::lua_setmetatable(lua, 1);
        stack.push_copy(1);
        push_proxy(lua);
        stack.push_copy(-1);
        stack.raw_set_field(1, "_G");
        ffi::lua_replace(lua, ffi::LUA_GLOBALSINDEX);
        ffi::lua_settop(lua, 1);
        (ffi::luaL_ref(lua, ffi::LUA_REGISTRYINDEX), handler)
    }
}

/// Pushes a proxy of the table on top, which stays below it.
///
/// # Safety
/// As [`set_up_globals`].
#[allow(unsafe_code)]
unsafe fn push_proxy(lua: *mut ffi::lua_State) {
    // SAFETY: the caller's promise; at most five slots are used.
    unsafe {
        ffi::lua_createtable(lua, 0, 0);
        ffi::lua_createtable(lua, 0, 3);
        ffi::lua_pushvalue(lua, -3);
        ffi::lua_setfield(lua, -2, c"__index".as_ptr());
        ffi::lua_pushcclosure(lua, native!(|_| Err(Raise::Here(READ_ONLY.to_owned()))), 0);
        ffi::lua_setfield(lua, -2, c"__newindex".as_ptr());
        ffi::lua_pushlightuserdata(lua, mark());
        ffi::lua_pushboolean(lua, 1);
        ffi::lua_rawset(lua, -3);
        ffi::lua_setmetatable(lua, -2);
    }
}

/// The key that only the metatables of proxies have.
pub(super) fn mark() -> *mut c_void {
    (&raw const MARK).cast_mut().cast()
}

/// Protects the metatable of strings: `getmetatable("")` returns a proxy of it.
///
/// # Safety
/// As [`set_up_globals`].
#[allow(unsafe_code)]
unsafe fn protect_strings(lua: *mut ffi::lua_State, stack: &mut Stack<'_>) {
    // SAFETY: the caller's promise; at most eight slots are used.
    unsafe {
        stack.push_bytes(b"");
        ffi::lua_getmetatable(lua, -1);
        stack.push_table(0, 1);
        stack.raw_get_field(1, "string");
        stack.raw_set_field(-2, "__index");
        push_proxy(lua);
        ffi::lua_setfield(lua, -3, c"__metatable".as_ptr());
        stack.pop(3);
    }
}

/// # Safety
/// As [`set_up_globals`].
#[allow(unsafe_code)]
unsafe fn replace_builtins(lua: *mut ffi::lua_State, stack: &mut Stack<'_>) {
    let replaced: [(Option<&str>, &str, ffi::lua_CFunction); 18] = [
        (None, "pcall", builtins::protected_call),
        (None, "xpcall", builtins::handled_call),
        (None, "load", builtins::load),
        (None, "loadstring", builtins::load_string),
        (None, "rawget", builtins::raw_get),
        (None, "rawset", builtins::guard),
        (None, "setmetatable", builtins::guard),
        (None, "getmetatable", builtins::get_metatable),
        (None, "unpack", native!(builtins::unpack)),
        (None, "collectgarbage", builtins::collect_garbage),
        (Some("table"), "insert", builtins::insert),
        (Some("string"), "rep", native!(strings::repeat)),
        (Some("string"), "find", native!(strings::find)),
        (Some("string"), "match", native!(strings::find_captures)),
        (Some("string"), "gmatch", native!(strings::gmatch)),
        (Some("string"), "gsub", strings::gsub),
        (Some("math"), "random", native!(random::random)),
        (Some("math"), "randomseed", native!(random::randomseed)),
    ];
    // `pairs` uses stock `next` for plain tables, and ours for proxies.
    stack.raw_get_field(1, "next");
    stack.push_function(builtins::next);
    stack.push_copy(-1);
    stack.raw_set_field(1, "next");
    // SAFETY: the caller's promise; both upvalues are on top.
    unsafe { ffi::lua_pushcclosure(lua, builtins::pairs, 2) };
    stack.raw_set_field(1, "pairs");
    for (library, name, function) in replaced {
        match library {
            Some(library) => stack.raw_get_field(1, library),
            None => stack.push_copy(1),
        }
        // The replaced function is the upvalue of its replacement.
        stack.raw_get_field(-1, name);
        // SAFETY: the caller's promise; the upvalue is on top.
        unsafe { ffi::lua_pushcclosure(lua, function, 1) };
        stack.raw_set_field(-2, name);
        stack.pop(1);
    }
    // `string.gfind` is the old name of `string.gmatch`.
    stack.raw_get_field(1, "string");
    stack.raw_get_field(-1, "gmatch");
    stack.raw_set_field(-2, "gfind");
    stack.pop(1);
}

fn missing_global(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let Ok(name) = stack.text(2) else {
        let text = "Second argument to luaProtectedTableError must be a string or number";
        return Err(Raise::Here(text.to_owned()));
    };
    let name = String::from_utf8_lossy(name);
    Err(Raise::Here(format!("Script attempted to access nonexistent global variable '{name}'")))
}

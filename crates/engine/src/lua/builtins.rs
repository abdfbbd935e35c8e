//! Functions of Lua's base library that differ from stock Lua; `sandbox.rs` says why.
//!
//! Most are written directly against Lua's C interface, because they call back into Lua. An error
//! may `longjmp` over them, so none of them has a local variable with a destructor.

use std::ffi::{CStr, c_char, c_int, c_void};

use mlua_sys as ffi;

use super::native::{Raise, enter};
use super::sandbox::{READ_ONLY, mark};
use super::stack::{Kind, Stack};
use super::state::State;

/// `unpack(list [, from [, to]])`.
pub(super) fn unpack(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    if stack.kind(1) != Kind::Table {
        return Err(stack.wrong_type(1, "table"));
    }
    let from = stack.optional_integer(2, 1)? as i32;
    let to = stack.optional_integer(3, stack.raw_len(1) as i64)? as i32;
    let count = i64::from(to) - i64::from(from) + 1;
    if count <= 0 {
        return Ok(0);
    }
    let count = count as usize;
    if !stack.ensure(count) {
        return Err(Raise::Here("too many results to unpack".to_owned()));
    }
    for index in from..=to {
        stack.raw_get_index(1, index);
    }
    Ok(count)
}

/// Whether argument 1 is a read-only proxy. Leaves the stack unchanged.
///
/// # Safety
/// Inside a C function that Lua called; two slots are free.
#[allow(unsafe_code)]
unsafe fn is_proxy(lua: *mut ffi::lua_State) -> bool {
    // SAFETY: raw access only; raises nothing.
    unsafe {
        if ffi::lua_type(lua, 1) != ffi::LUA_TTABLE || ffi::lua_getmetatable(lua, 1) == 0 {
            return false;
        }
        ffi::lua_pushlightuserdata(lua, mark());
        ffi::lua_rawget_(lua, -2);
        let marked = ffi::lua_toboolean(lua, -1) != 0;
        ffi::lua_settop(lua, -3);
        marked
    }
}

/// Replaces argument 1, a proxy, by the table it protects.
///
/// # Safety
/// As [`is_proxy`], which returned `true`.
#[allow(unsafe_code)]
unsafe fn replace_proxy(lua: *mut ffi::lua_State) {
    // SAFETY: a proxy has a metatable whose `__index` is a table; the key exists as a string
    // already.
    unsafe {
        ffi::lua_getmetatable(lua, 1);
        ffi::lua_getfield_(lua, -1, c"__index".as_ptr());
        ffi::lua_replace(lua, 1);
        ffi::lua_settop(lua, -2);
    }
}

/// Wraps a builtin that changes its first argument: refuses a proxy.
///
/// # Safety
/// Only for Lua, as a closure over the builtin.
#[allow(unsafe_code)]
pub(super) unsafe extern "C-unwind" fn guard(lua: *mut ffi::lua_State) -> c_int {
    // SAFETY: the upvalue is a C function of stock Lua, which takes the same arguments and uses no
    // upvalues of its own.
    unsafe {
        if is_proxy(lua) {
            return enter(lua, |_| Err(Raise::Plain(READ_ONLY.to_owned())));
        }
        match ffi::lua_tocfunction(lua, ffi::lua_upvalueindex(1)) {
            Some(builtin) => builtin(lua),
            None => 0,
        }
    }
}

/// `table.insert` that refuses to shift a list by millions of slots: no time limit interrupts that
/// loop.
///
/// # Safety
/// Only for Lua, as a closure over stock `table.insert`.
#[allow(unsafe_code)]
pub(super) unsafe extern "C-unwind" fn insert(lua: *mut ffi::lua_State) -> c_int {
    // SAFETY: as `guard`.
    unsafe {
        if ffi::lua_gettop(lua) == 3 && ffi::lua_tonumber(lua, 2) < -1_000_000.0 {
            return enter(lua, |_| Err(Raise::Argument(2, "position out of bounds".to_owned())));
        }
        guard(lua)
    }
}

/// `collectgarbage`, restricted to options whose effect ends with the script.
///
/// # Safety
/// Only for Lua, as a closure over stock `collectgarbage`.
#[allow(unsafe_code)]
pub(super) unsafe extern "C-unwind" fn collect_garbage(lua: *mut ffi::lua_State) -> c_int {
    // SAFETY: an option is a terminated string; otherwise as `guard`.
    unsafe {
        let option = ffi::luaL_optlstring(lua, 1, c"collect".as_ptr(), std::ptr::null_mut());
        if matches!(
            CStr::from_ptr(option).to_bytes(),
            b"stop" | b"restart" | b"setpause" | b"setstepmul"
        ) {
            ffi::lua_pushnumber(lua, 0.0);
            return 1;
        }
        guard(lua)
    }
}

/// `pairs` that iterates over the table behind a proxy.
///
/// # Safety
/// Only for Lua, as a closure over stock `next` and ours.
#[allow(unsafe_code)]
pub(super) unsafe extern "C-unwind" fn pairs(lua: *mut ffi::lua_State) -> c_int {
    // SAFETY: leaves the three results of `pairs`; twenty slots are free.
    unsafe {
        ffi::luaL_checktype(lua, 1, ffi::LUA_TTABLE);
        let walk = if is_proxy(lua) { 2 } else { 1 };
        ffi::lua_pushvalue(lua, ffi::lua_upvalueindex(walk));
        ffi::lua_pushvalue(lua, 1);
        ffi::lua_pushnil(lua);
        3
    }
}

/// `next` that looks behind proxies.
///
/// # Safety
/// Only for Lua.
#[allow(unsafe_code)]
pub(super) unsafe extern "C-unwind" fn next(lua: *mut ffi::lua_State) -> c_int {
    // SAFETY: as stock `next`; an error of `lua_next` jumps over nothing.
    unsafe {
        ffi::luaL_checktype(lua, 1, ffi::LUA_TTABLE);
        ffi::lua_settop(lua, 2);
        if is_proxy(lua) {
            replace_proxy(lua);
        }
        if ffi::lua_next(lua, 1) != 0 {
            return 2;
        }
        ffi::lua_pushnil(lua);
        1
    }
}

/// `rawget` that looks behind proxies.
///
/// # Safety
/// Only for Lua.
#[allow(unsafe_code)]
pub(super) unsafe extern "C-unwind" fn raw_get(lua: *mut ffi::lua_State) -> c_int {
    // SAFETY: as stock `rawget`.
    unsafe {
        ffi::luaL_checktype(lua, 1, ffi::LUA_TTABLE);
        ffi::luaL_checkany(lua, 2);
        ffi::lua_settop(lua, 2);
        if is_proxy(lua) {
            replace_proxy(lua);
        }
        ffi::lua_rawget_(lua, 1);
        1
    }
}

/// `getmetatable` that hides the metatable of proxies.
///
/// # Safety
/// Only for Lua, as a closure over stock `getmetatable`.
#[allow(unsafe_code)]
pub(super) unsafe extern "C-unwind" fn get_metatable(lua: *mut ffi::lua_State) -> c_int {
    // SAFETY: as `guard`.
    unsafe {
        if is_proxy(lua) {
            ffi::lua_pushnil(lua);
            return 1;
        }
        guard(lua)
    }
}

/// `pcall` that returns the text of an error table with `err`, and does not catch the stop of a
/// script.
///
/// # Safety
/// Only for Lua.
#[allow(unsafe_code)]
pub(super) unsafe extern "C-unwind" fn protected_call(lua: *mut ffi::lua_State) -> c_int {
    // SAFETY: the arguments are a function and what it is called with; `lua_pcall` does not raise, and
    // the error it leaves takes the place of the arguments.
    unsafe {
        ffi::luaL_checkany(lua, 1);
        ffi::lua_pushboolean(lua, 1);
        ffi::lua_insert(lua, 1);
        if ffi::lua_pcall(lua, ffi::lua_gettop(lua) - 2, ffi::LUA_MULTRET, 0) != ffi::LUA_OK {
            if State::of(lua).is_stopping() {
                ffi::lua_error(lua);
            }
            ffi::lua_remove(lua, 1);
            if ffi::lua_type(lua, -1) == ffi::LUA_TTABLE {
                ffi::lua_getfield_(lua, -1, c"err".as_ptr());
                if ffi::lua_isstring(lua, -1) != 0 {
                    ffi::lua_replace(lua, -2);
                }
            }
            ffi::lua_pushboolean(lua, 0);
            ffi::lua_insert(lua, 1);
        }
        ffi::lua_gettop(lua)
    }
}

/// `xpcall(function, handler)` whose handler does not see the stop of a script: it would run inside
/// the hook that stops the script, where no hook can stop the handler.
///
/// # Safety
/// Only for Lua.
#[allow(unsafe_code)]
pub(super) unsafe extern "C-unwind" fn handled_call(lua: *mut ffi::lua_State) -> c_int {
    // SAFETY: the stack becomes our handler and the function; then as stock `xpcall`.
    unsafe {
        ffi::luaL_checkany(lua, 2);
        ffi::lua_settop(lua, 2);
        ffi::lua_pushcclosure(lua, handle, 1);
        ffi::lua_insert(lua, 1);
        let status = ffi::lua_pcall(lua, 0, ffi::LUA_MULTRET, 1);
        if status != ffi::LUA_OK && State::of(lua).is_stopping() {
            ffi::lua_error(lua);
        }
        ffi::lua_pushboolean(lua, (status == ffi::LUA_OK).into());
        ffi::lua_replace(lua, 1);
        ffi::lua_gettop(lua)
    }
}

/// Calls the handler of [`handled_call`] with an error, unless the script is being stopped.
///
/// # Safety
/// Only for Lua, as a closure over the handler.
#[allow(unsafe_code)]
pub(super) unsafe extern "C-unwind" fn handle(lua: *mut ffi::lua_State) -> c_int {
    // SAFETY: the error is at 1; an error of the handler jumps over nothing.
    unsafe {
        if !State::of(lua).is_stopping() {
            ffi::lua_pushvalue(lua, ffi::lua_upvalueindex(1));
            ffi::lua_insert(lua, 1);
            ffi::lua_call(lua, 1, 1);
        }
        1
    }
}

/// `loadstring(text [, name])`; refuses bytecode.
///
/// # Safety
/// Only for Lua.
#[allow(unsafe_code)]
pub(super) unsafe extern "C-unwind" fn load_string(lua: *mut ffi::lua_State) -> c_int {
    // SAFETY: the arguments are checked; the name is a string with its own place on the stack.
    unsafe {
        let text = ffi::luaL_checklstring(lua, 1, std::ptr::null_mut());
        let name = ffi::luaL_optlstring(lua, 2, text, std::ptr::null_mut());
        ffi::lua_settop(lua, 2);
        compile(lua, name)
    }
}

/// `load(function [, name])`: parses the pieces that the function returns; refuses bytecode.
///
/// # Safety
/// Only for Lua.
#[allow(unsafe_code)]
pub(super) unsafe extern "C-unwind" fn load(lua: *mut ffi::lua_State) -> c_int {
    // SAFETY: the stack holds the function, the name, and at 3 the piece that the parser reads.
    unsafe {
        let name = ffi::luaL_optlstring(lua, 2, c"=(load)".as_ptr(), std::ptr::null_mut());
        ffi::luaL_checktype(lua, 1, ffi::LUA_TFUNCTION);
        // The parser does not keep the name alive; this copy does.
        ffi::lua_settop(lua, 2);
        ffi::lua_pushstring_(lua, name);
        let name = ffi::lua_tolstring(lua, 3, std::ptr::null_mut());
        ffi::lua_replace(lua, 2);
        ffi::lua_settop(lua, 3);
        let mut begun = false;
        let status = ffi::lua_load(lua, next_piece, (&raw mut begun).cast(), name);
        results_of_load(lua, status)
    }
}

/// Gives the parser a space, so that it does not take the following bytes for bytecode, and then
/// the pieces that the function at 1 returns.
///
/// # Safety
/// Only for `lua_load` in [`load`].
#[allow(unsafe_code)]
pub(super) unsafe extern "C-unwind" fn next_piece(
    lua: *mut ffi::lua_State,
    begun: *mut c_void,
    len: *mut usize,
) -> *const c_char {
    // SAFETY: `begun` is the variable in `load`; errors jump over nothing. The piece stays at 3.
    unsafe {
        if !std::mem::replace(&mut *begun.cast::<bool>(), true) {
            *len = 1;
            return c" ".as_ptr();
        }
        ffi::luaL_checkstack_(lua, 2, c"too many nested functions".as_ptr());
        ffi::lua_pushvalue(lua, 1);
        ffi::lua_call(lua, 0, 1);
        match ffi::lua_type(lua, -1) {
            ffi::LUA_TNIL => {
                *len = 0;
                std::ptr::null()
            }
            ffi::LUA_TSTRING | ffi::LUA_TNUMBER => {
                ffi::lua_replace(lua, 3);
                ffi::lua_tolstring(lua, 3, len)
            }
            _ => {
                ffi::luaL_error(lua, c"reader function must return a string".as_ptr());
                std::ptr::null()
            }
        }
    }
}

/// The results of `load`: a function, or nil and a message.
///
/// # Safety
/// Inside a C function that Lua called, with what compiling left on top.
#[allow(unsafe_code)]
unsafe fn results_of_load(lua: *mut ffi::lua_State, status: c_int) -> c_int {
    if status == ffi::LUA_OK {
        return 1;
    }
    // SAFETY: the message is on top; a slot is free.
    unsafe {
        ffi::lua_pushnil(lua);
        ffi::lua_insert(lua, -2);
    }
    2
}

/// Compiles the string at 1 under a name and returns the results of `load`.
///
/// # Safety
/// Inside a C function that Lua called, with two values on its stack, the second of which may hold
/// `name`.
#[allow(unsafe_code)]
unsafe fn compile(lua: *mut ffi::lua_State, name: *const c_char) -> c_int {
    // SAFETY: strings are on the stack while they are used. The parser reads the name as a C string,
    // and finds this very copy, which the stack keeps alive.
    unsafe {
        let mut len = 0;
        ffi::lua_pushstring_(lua, name);
        let name = ffi::lua_tolstring(lua, -1, std::ptr::null_mut());
        let mut text = ffi::lua_tolstring(lua, 1, &mut len);
        if len > 0 && *text.cast::<u8>() == ffi::LUA_SIGNATURE[0] {
            // Bytecode begins with this byte. After a space, it is a syntax error.
            ffi::lua_pushlstring_(lua, c" ".as_ptr(), 1);
            ffi::lua_pushvalue(lua, 1);
            ffi::lua_concat(lua, 2);
            text = ffi::lua_tolstring(lua, -1, &mut len);
        }
        results_of_load(lua, ffi::luaL_loadbuffer(lua, text, len, name))
    }
}

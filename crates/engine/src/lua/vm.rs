//! The Lua VM: one state, its limits, and running a compiled script in it.
//!
//! Lua errors jump (`longjmp`), so everything that can raise runs inside a `lua_pcall`. Code
//! outside of one uses the lenient allocator and raw access, which do not raise (see `stack.rs`).

use std::ffi::c_int;
use std::panic::resume_unwind;
use std::ptr::NonNull;

use mlua_sys as ffi;

use super::Call;
use super::convert;
use super::host::Host;
use super::interrupt::Interrupt;
use super::memory::{Mode, allocate};
use super::native::{Raise, enter, native};
use super::random::Random;
use super::sandbox;
use super::stack::{Kind, Stack};
use super::state::State;
use crate::reply::Reply;

/// The chunk name in error messages of Redis 7.
const CHUNK: &std::ffi::CStr = c"@user_script";
/// The number of instructions between two checks of the time limit.
const INSTRUCTIONS_PER_LOOK: c_int = 100_000;

/// A compiled script in a [`Vm`]: a reference in Lua's registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Compiled(c_int);

/// One run of a script.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) call: Call<'a>,
    /// The number of this run, for the [`Interrupt`].
    pub(super) number: u64,
    /// The SHA-1 that error messages show.
    pub(super) sha: &'a str,
}

/// One Lua state with Redis's libraries.
pub(super) struct Vm {
    lua: *mut ffi::lua_State,
    state: NonNull<State>,
    /// The real table of globals, which scripts reach only through a read-only proxy.
    globals: c_int,
    handler: c_int,
}

// SAFETY: a Lua state is bound to no thread, `Vm` owns it alone, and a host is stored only inside
// `run`, which borrows it.
#[allow(unsafe_code)]
unsafe impl Send for Vm {}

#[allow(unsafe_code)]
impl Vm {
    /// A VM that reports `version` to scripts.
    pub(super) fn new(interrupt: Interrupt, version: &str, random: Random) -> Self {
        let state = Box::new(State::new(interrupt, random));
        let state = NonNull::from(Box::leak(state));
        // SAFETY: the allocator's data is a `State`, which begins with its `Memory` and lives until
        // `drop` has closed Lua. The lenient allocator never refuses, so nothing raises.
        unsafe {
            let lua = ffi::lua_newstate(allocate, state.as_ptr().cast());
            assert!(!lua.is_null(), "Lua does not start");
            let (globals, handler) =
                sandbox::set_up_globals(lua, state.as_ref(), native!(annotate), version);
            // The parser does not keep the chunk name alive; this reference does.
            ffi::lua_pushstring_(lua, CHUNK.as_ptr());
            ffi::luaL_ref(lua, ffi::LUA_REGISTRYINDEX);
            Self { lua, state, globals, handler }
        }
    }

    /// The number of bytes used by the VM.
    pub(super) fn memory(&self) -> usize {
        self.state().memory.used()
    }

    /// The state of `math.random`.
    pub(super) fn random(&self) -> Random {
        self.state().random.get()
    }

    /// Compiles a script; `Err` is Lua's message.
    pub(super) fn compile(&mut self, text: &[u8], memory_limit: usize) -> Result<Compiled, String> {
        let memory = &self.state().memory;
        memory.set_limit(memory_limit.max(memory.used() + text.len() * 64));
        // A leading bytecode mark would make Lua skip its parser and trust the rest.
        let spaced: Vec<u8>;
        let text = if text.first() == Some(&ffi::LUA_SIGNATURE[0]) {
            spaced = [b" ", text].concat();
            &spaced
        } else {
            text
        };
        memory.set_mode(Mode::Strict);
        // SAFETY: compiling is protected inside Lua and reports errors; it leaves one value.
        let status = unsafe {
            ffi::luaL_loadbuffer(self.lua, text.as_ptr().cast(), text.len(), CHUNK.as_ptr())
        };
        memory.set_mode(Mode::Lenient);
        if status == ffi::LUA_OK {
            // SAFETY: pops the function; the lenient allocator does not raise.
            return Ok(Compiled(unsafe { ffi::luaL_ref(self.lua, ffi::LUA_REGISTRYINDEX) }));
        }
        // SAFETY: the message is on top, in a live state.
        let message = unsafe { Stack::new(self.lua, self.state()) };
        let text = String::from_utf8_lossy(message.bytes(-1).unwrap_or_default()).into_owned();
        // SAFETY: removes the message.
        unsafe { ffi::lua_settop(self.lua, 0) };
        Err(text)
    }

    /// Frees a compiled script.
    pub(super) fn forget(&mut self, script: Compiled) {
        // SAFETY: frees a place in the registry.
        unsafe { ffi::luaL_unref(self.lua, ffi::LUA_REGISTRYINDEX, script.0) }
    }

    /// Runs a script and writes its reply.
    pub(super) fn run(
        &mut self,
        script: Compiled,
        run: Run<'_>,
        host: &mut dyn Host,
        reply: &mut Reply,
    ) {
        host.begin(run.call.access);
        self.prepare(run.call);
        // SAFETY: only the lifetime changes. The pointer is removed below before this function returns:
        // nothing in between unwinds, as `enter` catches panics of native functions.
        let host: NonNull<dyn Host> = unsafe {
            std::mem::transmute::<NonNull<dyn Host + '_>, NonNull<dyn Host>>(NonNull::from(host))
        };
        let state = self.state();
        state.set_host(Some(host));
        state.interrupt.begin(run.number);
        state.memory.set_mode(Mode::Strict);
        // SAFETY: the function, then its error handler below it, are pushed onto an empty stack; all
        // that raises is inside `lua_pcall`.
        let status = unsafe {
            ffi::lua_rawgeti_(self.lua, ffi::LUA_REGISTRYINDEX, self.handler);
            ffi::lua_rawgeti_(self.lua, ffi::LUA_REGISTRYINDEX, script.0);
            ffi::lua_sethook(
                self.lua,
                Some(check_limits),
                ffi::LUA_MASKCOUNT,
                INSTRUCTIONS_PER_LOOK,
            );
            let status = ffi::lua_pcall(self.lua, 0, 1, 1);
            ffi::lua_sethook(self.lua, None, 0, 0);
            status
        };
        state.memory.set_mode(Mode::Lenient);
        state.interrupt.end();
        state.set_host(None);
        if let Some(panic) = state.take_panic() {
            self.clear();
            resume_unwind(panic);
        }
        // SAFETY: a live state with the handler and the result on its stack, and a lenient allocator.
        let mut stack = unsafe { Stack::new(self.lua, state) };
        if status == ffi::LUA_OK {
            convert::answer(&mut stack, state.protocol.get(), reply);
        } else {
            convert::failure(&mut stack, run.sha, reply);
        }
        self.clear();
        state.collect_if_much(self.lua);
        if status == ffi::LUA_ERRMEM {
            let before = state.memory.used();
            state.collect(self.lua);
            let (after, limit) = (state.memory.used(), run.call.limits.memory);
            tracing::warn!(script = run.sha, before, after, limit, "a script ran out of memory");
        }
    }

    fn prepare(&mut self, call: Call<'_>) {
        let state = self.state();
        state.prepare(call.limits);
        // SAFETY: pushes the real globals onto an empty stack and works on them with a lenient
        // allocator; twenty slots are free.
        let mut stack = unsafe {
            ffi::lua_rawgeti_(self.lua, ffi::LUA_REGISTRYINDEX, self.globals);
            Stack::new(self.lua, state)
        };
        for (name, values) in [("KEYS", call.keys), ("ARGV", call.args)] {
            stack.push_table(values.len(), 0);
            for (n, value) in values.iter().enumerate() {
                stack.push_bytes(value);
                stack.raw_set_at(-2, n + 1);
            }
            stack.raw_set_field(1, name);
        }
        self.clear();
    }

    fn clear(&mut self) {
        // SAFETY: empties the stack.
        unsafe { ffi::lua_settop(self.lua, 0) };
    }

    fn state<'a>(&self) -> &'a State {
        // SAFETY: it lives until `drop`, is never borrowed exclusively, and no caller keeps it longer.
        unsafe { self.state.as_ref() }
    }
}

#[allow(unsafe_code)]
impl Drop for Vm {
    fn drop(&mut self) {
        // SAFETY: Lua is closed before its state is freed, and neither is used again.
        unsafe {
            ffi::lua_close(self.lua);
            drop(Box::from_raw(self.state.as_ptr()));
        }
    }
}

/// Lua's hook: runs at intervals, and after a stop at every instruction, so that `pcall` cannot
/// hide it.
///
/// # Safety
/// Only for `lua_sethook`.
#[allow(unsafe_code)]
unsafe extern "C-unwind" fn check_limits(lua: *mut ffi::lua_State, _: *mut ffi::lua_Debug) {
    // SAFETY: Lua calls hooks with a live state; nothing here has a destructor when `enter` raises.
    unsafe {
        if State::of(lua).must_stop() {
            ffi::lua_sethook(lua, Some(check_limits), ffi::LUA_MASKCOUNT, 1);
            enter(lua, |_| Err(State::killed()));
        }
    }
}

/// The error handler: turns an error into a table with its location, as in Redis 7.
fn annotate(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let place = match stack.location(1) {
        Some(place) if place.is_native => stack.location(2).or(Some(place)),
        place => place,
    };
    if stack.kind(1) != Kind::Table {
        let text = [b"ERR ".to_vec(), describe(stack)].concat();
        stack.push_table(0, 3);
        stack.push_bytes(&text);
        stack.raw_set_field(-2, "err");
    } else {
        stack.push_copy(1);
    }
    if let Some(place) = place {
        stack.push_bytes(place.source.as_bytes());
        stack.raw_set_field(-2, "source");
        stack.push_number(place.line.into());
        stack.raw_set_field(-2, "line");
    }
    Ok(1)
}

/// The first argument as `tostring` shows it.
fn describe(stack: &mut Stack<'_>) -> Vec<u8> {
    match stack.kind(1) {
        Kind::None | Kind::Nil => b"nil".to_vec(),
        Kind::Boolean => stack.truth(1).to_string().into_bytes(),
        Kind::Number | Kind::String => stack.text(1).unwrap_or_default().to_vec(),
        kind => format!("{}: {:?}", kind.name(), stack.address(1)).into_bytes(),
    }
}

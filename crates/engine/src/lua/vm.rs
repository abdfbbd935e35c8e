//! The Lua VM: one state, its limits, and running a compiled script in it.
//!
//! The only file besides `stack.rs`, `memory.rs` and `sandbox.rs` with unsafe code. Errors of Lua jump,
//! so everything that can raise happens below a `lua_pcall`; what runs outside of one uses the lenient
//! allocator and raw access, which do not raise (see `stack.rs`).

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::panic::resume_unwind;
use std::ptr::NonNull;
use std::time::Duration;

use bytes::Bytes;
use mlua_sys as ffi;

use super::Call;
use super::convert;
use super::host::Host;
use super::interrupt::Interrupt;
use super::json::JsonConfig;
use super::memory::{Memory, allocate};
use super::native::{Raise, enter, native};
use super::random::Random;
use super::sandbox;
use super::stack::{Kind, Stack};
use crate::reply::{Protocol, Reply};

/// Garbage that is left to Lua's own pace.
const GARBAGE: usize = 32 << 20;

/// The chunk name that error messages of Redis 7 carry.
const CHUNK: &std::ffi::CStr = c"@user_script";
/// How many instructions run between two looks at the clock.
const INSTRUCTIONS_PER_LOOK: c_int = 100_000;
/// How many steps a native function takes between two looks at the clock.
const STEPS_PER_LOOK: u32 = 1 << 14;
/// What a stopped script answers.
const KILLED: &str = "ERR Script killed by user with SCRIPT KILL...";

/// What native functions share. Only ever used through shared references, as Lua holds its address.
#[repr(C)]
pub(super) struct State {
    /// First, because the allocator gets the same address.
    pub(super) memory: Memory,
    /// More than this in use between two scripts is taken for garbage.
    collect_above: Cell<usize>,
    pub(super) interrupt: Interrupt,
    pub(super) json: Cell<JsonConfig>,
    pub(super) random: Cell<Random>,
    /// The protocol that commands answer in, `redis.setresp`.
    pub(super) protocol: Cell<Protocol>,
    /// Reused by every `redis.call`.
    pub(super) command: RefCell<Vec<Bytes>>,
    pub(super) reply: RefCell<Reply>,
    /// Reused by encoders.
    pub(super) scratch: RefCell<Vec<u8>>,
    host: Cell<Option<NonNull<dyn Host>>>,
    wrote: Cell<bool>,
    stopping: Cell<bool>,
    steps: Cell<u32>,
    time_limit: Cell<Option<Duration>>,
    panic: RefCell<Option<Box<dyn Any + Send>>>,
}

#[allow(unsafe_code)]
impl State {
    /// The state of the VM that `lua` belongs to.
    ///
    /// # Safety
    /// `lua` is a live state of a [`Vm`], and the reference is not kept longer than that.
    pub(super) unsafe fn of<'a>(lua: *mut ffi::lua_State) -> &'a Self {
        let mut state: *mut c_void = std::ptr::null_mut();
        // SAFETY: every VM is made with the address of its `State` as the allocator's data.
        unsafe {
            ffi::lua_getallocf(lua, &mut state);
            &*state.cast::<Self>()
        }
    }

    /// Lets `act` use the host, unless no script runs or one of its calls is under way.
    pub(super) fn with_host<T>(&self, act: impl FnOnce(&mut dyn Host) -> T) -> Option<T> {
        // Taken while in use, so that there is never a second reference.
        let mut host = self.host.take()?;
        struct GiveBack<'a>(&'a State, NonNull<dyn Host>);
        impl Drop for GiveBack<'_> {
            fn drop(&mut self) {
                self.0.host.set(Some(self.1));
            }
        }
        let _give_back = GiveBack(self, host);
        // SAFETY: `Vm::run` holds the exclusive reference behind it for as long as it is stored here.
        Some(act(unsafe { host.as_mut() }))
    }

    /// Remembers that the script has written; from then on it cannot be stopped.
    pub(super) fn note_write(&self, host: &dyn Host) {
        if !self.wrote.get() && host.has_written() {
            self.wrote.set(true);
            self.interrupt.note_write();
        }
    }

    /// Keeps a panic until Lua has unwound.
    pub(super) fn keep_panic(&self, panic: Box<dyn Any + Send>) {
        *self.panic.borrow_mut() = Some(panic);
    }

    /// Whether the script must not go on: it is to be stopped, or a native function has panicked.
    pub(super) fn must_stop(&self) -> bool {
        let stop = self.stopping.get()
            || self.panic.borrow().is_some()
            || self.interrupt.must_stop(self.time_limit.get());
        self.stopping.set(stop);
        stop
    }

    /// To be called before every command: fails when the script was asked to stop.
    pub(super) fn check_asked(&self) -> Result<(), Raise> {
        if self.is_stopping() || (self.interrupt.is_asked() && self.must_stop()) {
            return Err(Self::killed());
        }
        Ok(())
    }

    /// To be called by loops in native functions, which no hook sees: fails when the script must stop.
    pub(super) fn step(&self) -> Result<(), Raise> {
        let steps = self.steps.get().wrapping_add(1);
        self.steps.set(steps);
        if steps.is_multiple_of(STEPS_PER_LOOK) && self.must_stop() {
            return Err(Self::killed());
        }
        Ok(())
    }

    /// Whether the error that is under way stops the script.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.get()
    }

    /// The error of a stopped script.
    fn killed() -> Raise {
        Raise::Reply(KILLED.to_owned())
    }

    /// Collects all garbage and says whether the limit is kept now.
    pub(super) fn collect(&self, lua: *mut ffi::lua_State) -> bool {
        // SAFETY: `lua` is live; collecting raises nothing, as there are no finalizers.
        unsafe { ffi::lua_gc(lua, ffi::LUA_GCCOLLECT, 0) };
        !self.memory.is_over()
    }
}

/// A compiled script in a [`Vm`]: a reference in Lua's registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Compiled(c_int);

/// One run of a script.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) call: Call<'a>,
    /// The number of this run, for the [`Interrupt`].
    pub(super) number: u64,
    /// What errors call the script.
    pub(super) sha: &'a str,
}

/// One Lua state with Redis's libraries.
pub(super) struct Vm {
    lua: *mut ffi::lua_State,
    state: NonNull<State>,
    /// The real table of globals, which scripts only see through a read-only one.
    globals: c_int,
    handler: c_int,
}

// SAFETY: a Lua state is bound to no thread, `Vm` owns it alone, and a host is stored only inside
// `run`, which borrows it.
#[allow(unsafe_code)]
unsafe impl Send for Vm {}

#[allow(unsafe_code)]
impl Vm {
    /// A VM that says `version` when scripts ask.
    pub(super) fn new(interrupt: Interrupt, version: &str, random: Random) -> Self {
        let state = Box::new(State {
            memory: Memory::new(),
            collect_above: Cell::new(GARBAGE),
            interrupt,
            json: Cell::default(),
            random: Cell::new(random),
            protocol: Cell::new(Protocol::Resp2),
            command: RefCell::default(),
            reply: RefCell::new(Reply::new(Protocol::Resp2)),
            scratch: RefCell::default(),
            host: Cell::new(None),
            wrote: Cell::new(false),
            stopping: Cell::new(false),
            steps: Cell::new(0),
            time_limit: Cell::new(None),
            panic: RefCell::new(None),
        });
        let state = NonNull::from(Box::leak(state));
        // SAFETY: the allocator's data is a `State`, which begins with its `Memory` and lives until
        // `drop` has closed Lua. The lenient allocator never refuses, so nothing raises.
        unsafe {
            let lua = ffi::lua_newstate(allocate, state.as_ptr().cast());
            assert!(!lua.is_null(), "Lua does not start");
            let (globals, handler) =
                sandbox::furnish(lua, state.as_ref(), native!(annotate), version);
            // The parser does not keep the chunk's name alive by itself.
            ffi::lua_pushstring_(lua, CHUNK.as_ptr());
            ffi::luaL_ref(lua, ffi::LUA_REGISTRYINDEX);
            Self { lua, state, globals, handler }
        }
    }

    /// Bytes that the VM uses.
    pub(super) fn memory(&self) -> usize {
        self.state().memory.used()
    }

    /// Where `math.random` goes on.
    pub(super) fn random(&self) -> Random {
        self.state().random.get()
    }

    /// Compiles a script; `Err` is Lua's message.
    pub(super) fn compile(&mut self, text: &[u8], memory_limit: usize) -> Result<Compiled, String> {
        let memory = &self.state().memory;
        memory.set_limit(memory_limit.max(memory.used() + text.len() * 64));
        // The first byte of compiled code would make Lua skip its parser, and trust the rest.
        let spaced: Vec<u8>;
        let text = if text.first() == Some(&ffi::LUA_SIGNATURE[0]) {
            spaced = [b" ", text].concat();
            &spaced
        } else {
            text
        };
        memory.strictly(true);
        // SAFETY: compiling is protected inside Lua and reports errors; it leaves one value.
        let status = unsafe {
            ffi::luaL_loadbuffer(self.lua, text.as_ptr().cast(), text.len(), CHUNK.as_ptr())
        };
        memory.strictly(false);
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

    /// Forgets a compiled script.
    pub(super) fn forget(&mut self, script: Compiled) {
        // SAFETY: frees a place in the registry.
        unsafe { ffi::luaL_unref(self.lua, ffi::LUA_REGISTRYINDEX, script.0) }
    }

    /// Runs a script and writes its answer.
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
        state.host.set(Some(host));
        state.interrupt.begin(run.number);
        state.memory.strictly(true);
        // SAFETY: the function, then its error handler below it, are pushed onto an empty stack; all
        // that raises is inside `lua_pcall`.
        let status = unsafe {
            ffi::lua_rawgeti_(self.lua, ffi::LUA_REGISTRYINDEX, self.handler);
            ffi::lua_rawgeti_(self.lua, ffi::LUA_REGISTRYINDEX, script.0);
            ffi::lua_sethook(self.lua, Some(look), ffi::LUA_MASKCOUNT, INSTRUCTIONS_PER_LOOK);
            let status = ffi::lua_pcall(self.lua, 0, 1, 1);
            ffi::lua_sethook(self.lua, None, 0, 0);
            status
        };
        state.memory.strictly(false);
        state.interrupt.end();
        state.host.set(None);
        if let Some(panic) = state.panic.take() {
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
        // Lua collects a little at each allocation, however large that is: scripts that handle few but
        // large strings outrun it.
        if state.memory.used() > state.collect_above.get() {
            state.collect(self.lua);
            state.collect_above.set(state.memory.used() * 2 + GARBAGE);
        }
        if status == ffi::LUA_ERRMEM {
            let before = state.memory.used();
            state.collect(self.lua);
            let (after, limit) = (state.memory.used(), run.call.limits.memory);
            tracing::warn!(script = run.sha, before, after, limit, "a script ran out of memory");
        }
    }

    fn prepare(&mut self, call: Call<'_>) {
        let state = self.state();
        state.wrote.set(false);
        state.stopping.set(false);
        state.time_limit.set(call.limits.time);
        state.memory.set_limit(call.limits.memory);
        if state.protocol.replace(Protocol::Resp2) != Protocol::Resp2 {
            state.reply.replace(Reply::new(Protocol::Resp2));
        }
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

/// Lua's hook: from time to time, and after a stop at every instruction, so that `pcall` cannot hide it.
///
/// # Safety
/// Only for `lua_sethook`.
#[allow(unsafe_code)]
unsafe extern "C-unwind" fn look(lua: *mut ffi::lua_State, _: *mut ffi::lua_Debug) {
    // SAFETY: Lua calls hooks with a live state; nothing here has a destructor when `enter` raises.
    unsafe {
        if State::of(lua).must_stop() {
            ffi::lua_sethook(lua, Some(look), ffi::LUA_MASKCOUNT, 1);
            enter(lua, |_| Err(State::killed()));
        }
    }
}

/// The error handler: makes an error a table with the place where it happened, as Redis 7 does.
fn annotate(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let place = match stack.place(1) {
        Some(place) if place.is_native => stack.place(2).or(Some(place)),
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

//! State shared by the native functions of one VM: limits, the host of the running script, reused
//! buffers.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::time::Duration;

use bytes::Bytes;
use mlua_sys as ffi;

use super::Limits;
use super::host::Host;
use super::interrupt::Interrupt;
use super::json::JsonConfig;
use super::memory::Memory;
use super::native::Raise;
use super::random::Random;
use crate::reply::{Protocol, Reply};

/// The amount of garbage that is left to Lua's incremental collector.
const GARBAGE: usize = 32 << 20;
/// The number of steps of a native function between two checks of the time limit.
const STEPS_PER_LOOK: u32 = 1 << 14;
/// The error of a stopped script.
const KILLED: &str = "ERR Script killed by user with SCRIPT KILL...";

/// The shared state. Lua holds its address, so it is only used through shared references.
#[repr(C)]
pub(super) struct State {
    /// The first field, because the allocator gets the same address.
    pub(super) memory: Memory,
    /// Memory use above this between two scripts triggers a collection.
    collect_above: Cell<usize>,
    pub(super) interrupt: Interrupt,
    pub(super) json: Cell<JsonConfig>,
    pub(super) random: Cell<Random>,
    /// The protocol of commands' replies, set by `redis.setresp`.
    pub(super) protocol: Cell<Protocol>,
    /// A buffer reused by every `redis.call`.
    pub(super) command: RefCell<Vec<Bytes>>,
    pub(super) reply: RefCell<Reply>,
    /// A buffer reused by encoders.
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
    /// The state of a new VM.
    pub(super) fn new(interrupt: Interrupt, random: Random) -> Self {
        Self {
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
        }
    }

    /// The state of the VM that `lua` belongs to.
    ///
    /// # Safety
    /// `lua` is a live state of a [`Vm`](super::vm::Vm), and the reference is not kept longer than that.
    pub(super) unsafe fn of<'a>(lua: *mut ffi::lua_State) -> &'a Self {
        let mut state: *mut c_void = std::ptr::null_mut();
        // SAFETY: every VM is made with the address of its `State` as the allocator's data.
        unsafe {
            ffi::lua_getallocf(lua, &mut state);
            &*state.cast::<Self>()
        }
    }

    /// Resets the state for the next script.
    pub(super) fn prepare(&self, limits: Limits) {
        self.wrote.set(false);
        self.stopping.set(false);
        self.time_limit.set(limits.time);
        self.memory.set_limit(limits.memory);
        if self.protocol.replace(Protocol::Resp2) != Protocol::Resp2 {
            self.reply.replace(Reply::new(Protocol::Resp2));
        }
    }

    /// Stores the host of the running script, or removes it.
    pub(super) fn set_host(&self, host: Option<NonNull<dyn Host>>) {
        self.host.set(host);
    }

    /// Calls `act` with the host; `None` if no script runs or the host is already in use.
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

    /// Notes that the script has written; from then on it cannot be stopped.
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

    /// Takes the panic of a native function, if there was one.
    pub(super) fn take_panic(&self) -> Option<Box<dyn Any + Send>> {
        self.panic.take()
    }

    /// Whether the script must stop: it was asked to, or a native function has panicked.
    pub(super) fn must_stop(&self) -> bool {
        let stop = self.stopping.get()
            || self.panic.borrow().is_some()
            || self.interrupt.must_stop(self.time_limit.get());
        self.stopping.set(stop);
        stop
    }

    /// Fails if the script was asked to stop; called before every command.
    pub(super) fn check_asked(&self) -> Result<(), Raise> {
        if self.is_stopping() || (self.interrupt.is_asked() && self.must_stop()) {
            return Err(Self::killed());
        }
        Ok(())
    }

    /// Fails if the script must stop; called by loops of native functions, which no hook
    /// interrupts.
    pub(super) fn step(&self) -> Result<(), Raise> {
        let steps = self.steps.get().wrapping_add(1);
        self.steps.set(steps);
        if steps.is_multiple_of(STEPS_PER_LOOK) && self.must_stop() {
            return Err(Self::killed());
        }
        Ok(())
    }

    /// Whether the current error stops the script.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.get()
    }

    /// The error of a stopped script.
    pub(super) fn killed() -> Raise {
        Raise::Reply(KILLED.to_owned())
    }

    /// Collects all garbage; returns whether memory use is within the limit now.
    pub(super) fn collect(&self, lua: *mut ffi::lua_State) -> bool {
        // SAFETY: `lua` is live; collecting raises nothing, as there are no finalizers.
        unsafe { ffi::lua_gc(lua, ffi::LUA_GCCOLLECT, 0) };
        !self.memory.is_over()
    }

    /// Collects garbage if there is much. Lua's collector works a little at each allocation,
    /// regardless of its size, so scripts with few but large strings outrun it.
    pub(super) fn collect_if_much(&self, lua: *mut ffi::lua_State) {
        if self.memory.used() > self.collect_above.get() {
            self.collect(lua);
            self.collect_above.set(self.memory.used() * 2 + GARBAGE);
        }
    }
}

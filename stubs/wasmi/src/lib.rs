//! A stand-in for the WebAssembly interpreter: it loads no module, so nothing after that ever happens.
//!
//! Typst calls it for `plugin(…)`. Types that only exist once a module was loaded have no values.

use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;

/// The one error: there are no plug-ins.
#[derive(Debug)]
pub struct Error;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ticket templates have no WebAssembly plug-ins")
    }
}

impl std::error::Error for Error {}

/// Settings of an engine; there are none.
#[derive(Default)]
pub struct Config;

impl Config {
    /// Takes note of nothing.
    pub fn wasm_relaxed_simd(&mut self, _: bool) -> &mut Self {
        self
    }
}

/// An engine that loads no modules.
pub struct Engine;

impl Engine {
    /// An engine.
    pub fn new(_: &Config) -> Self {
        Self
    }
}

/// A module: there is none.
pub struct Module(Infallible);

impl Module {
    /// Refuses every module.
    pub fn new(_: &Engine, _: &[u8]) -> Result<Self, Error> {
        Err(Error)
    }

    /// One export.
    pub fn get_export(&self, _: &str) -> Option<ExternType> {
        match self.0 {}
    }

    /// All exports.
    pub fn exports(&self) -> std::iter::Empty<ExportType> {
        match self.0 {}
    }
}

/// An export of a module: there is none.
pub struct ExportType(Infallible);

impl ExportType {
    /// Its type.
    pub fn ty(&self) -> &ExternType {
        match self.0 {}
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self.0 {}
    }
}

/// The type of an export.
pub enum ExternType {
    /// A function.
    Func(FuncType),
    /// A memory.
    Memory(MemoryType),
}

/// The type of a memory: there is none.
pub struct MemoryType(Infallible);

/// The type of a function: there is none.
pub struct FuncType(Infallible);

impl FuncType {
    /// Types of the parameters.
    pub fn params(&self) -> &[ValType] {
        match self.0 {}
    }

    /// Types of the results.
    pub fn results(&self) -> &[ValType] {
        match self.0 {}
    }
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValType {
    /// A 32-bit integer.
    I32,
    /// Anything else.
    Other,
}

/// A value.
pub enum Val {
    /// A 32-bit integer.
    I32(i32),
    /// Anything else.
    Other,
}

/// Makes instances of modules, of which there are none.
pub struct Linker<T> {
    engine: Engine,
    data: PhantomData<fn() -> T>,
}

impl<T> Linker<T> {
    /// A linker.
    pub fn new(_: &Engine) -> Self {
        Self { engine: Engine, data: PhantomData }
    }

    /// Takes note of no function.
    pub fn func_wrap<F>(&mut self, _: &str, _: &str, _: F) -> Result<&mut Self, Error> {
        Ok(self)
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// An instance of a module.
    pub fn instantiate_and_start(&self, _: &mut Store<T>, module: &Module) -> Result<Instance, Error> {
        match module.0 {}
    }
}

/// What instances keep.
pub struct Store<T>(T);

impl<T> Store<T> {
    /// A store.
    pub fn new(_: &Engine, data: T) -> Self {
        Self(data)
    }

    /// The host's data.
    pub fn data_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

/// An instance of a module: there is none.
pub struct Instance(Infallible);

impl Instance {
    /// One export.
    pub fn get_export<C>(&self, _: C, _: &str) -> Option<Extern> {
        match self.0 {}
    }
}

/// Something exported: there is nothing.
pub struct Extern(Infallible);

impl Extern {
    /// As a function.
    pub fn into_func(self) -> Option<Func> {
        match self.0 {}
    }

    /// As a memory.
    pub fn into_memory(self) -> Option<Memory> {
        match self.0 {}
    }
}

/// A function: there is none.
pub struct Func(Infallible);

impl Func {
    /// Its type.
    pub fn ty<C>(&self, _: C) -> FuncType {
        match self.0 {}
    }

    /// Calls it.
    pub fn call<C>(&self, _: C, _: &[Val], _: &mut [Val]) -> Result<(), Error> {
        match self.0 {}
    }
}

/// The memory of an instance: there is none.
pub struct Memory(Infallible);

impl Memory {
    /// Its size in pages.
    pub fn size<C>(&self, _: C) -> u64 {
        match self.0 {}
    }

    /// Its bytes.
    pub fn data<'a, C>(&self, _: &'a C) -> &'a [u8] {
        match self.0 {}
    }

    /// Its bytes, to be changed.
    pub fn data_mut<'a, C>(&self, _: &'a mut C) -> &'a mut [u8] {
        match self.0 {}
    }

    /// Makes it larger.
    pub fn grow<C>(&self, _: C, _: u64) -> Result<u64, Error> {
        match self.0 {}
    }

    /// Reads from it.
    pub fn read<C>(&self, _: C, _: usize, _: &mut [u8]) -> Result<(), Error> {
        match self.0 {}
    }

    /// Writes to it.
    pub fn write<C>(&self, _: C, _: usize, _: &[u8]) -> Result<(), Error> {
        match self.0 {}
    }
}

/// What a function of the host may touch; it is never called.
pub struct Caller<'a, T> {
    nobody: Infallible,
    data: PhantomData<&'a mut T>,
}

impl<T> Caller<'_, T> {
    /// One export of the calling instance.
    pub fn get_export(&self, _: &str) -> Option<Extern> {
        match self.nobody {}
    }

    /// The host's data.
    pub fn data_mut(&mut self) -> &mut T {
        match self.nobody {}
    }
}

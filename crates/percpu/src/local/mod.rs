//! The ways to count locally: in the thread that owns the counter and in the signal handlers that
//! interrupt it.
//!
//! This is the user-space form of a question asked of the kernel's `local_t` in 2008: a counter that
//! one CPU bumps, interrupt handlers included, needs no lock prefix, so what is the cheapest way to
//! bump it? Signal handlers stand for interrupts here. One file for each way, all behind one trait,
//! so that they can be measured side by side.
//!
//! | way | a bump is | memory |
//! |---|---|---|
//! | [`Atomic`] | one locked instruction | 8 bytes |
//! | [`Sigmask`] | two system calls around a plain addition | 8 bytes |
//! | [`Deferred`] | two stores around a plain addition; handlers are put off | 8 bytes |
//! | [`TriValue`] | a plain addition to the word of its context | 24 bytes |
//! | [`Local`] | one unlocked instruction, where there is one | 8 bytes |
//! | [`PerCpu`] | a critical section on the CPU's lane | 8 bytes in each lane |
//!
//! All but the last belong to a thread: the type is not `Sync`, so only that thread and its handlers
//! reach it.

mod atomic;
#[cfg(unix)]
pub mod deferred;
#[expect(
    clippy::module_inception,
    reason = "the way is called local_t where it comes from"
)]
mod local;
mod percpu;
#[cfg(unix)]
mod sigmask;
pub mod trivalue;

pub use atomic::Atomic;
#[cfg(unix)]
pub use deferred::Deferred;
pub use local::Local;
pub use percpu::PerCpu;
#[cfg(unix)]
pub use sigmask::Sigmask;
pub use trivalue::TriValue;

/// The way that suits this architecture best: for statistics bumped by a thread and its handlers,
/// read as a sum.
///
/// [`Local`] where memory can be changed by one instruction, [`TriValue`] elsewhere. Code that uses
/// it must enter [`trivalue::Context`] in its handlers, which costs two stores and is right for both.
/// `countersink bench local` says whether the choice was the fastest on a machine.
#[cfg(target_arch = "x86_64")]
pub type LocalCount = Local;
/// The way that suits this architecture best: for statistics bumped by a thread and its handlers,
/// read as a sum.
///
/// [`Local`] where memory can be changed by one instruction, [`TriValue`] elsewhere. Code that uses
/// it must enter [`trivalue::Context`] in its handlers, which costs two stores and is right for both.
/// `countersink bench local` says whether the choice was the fastest on a machine.
#[cfg(not(target_arch = "x86_64"))]
pub type LocalCount = TriValue;

/// Where code can run that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Context {
    /// The thread itself.
    Thread,
    /// A signal handler that interrupted the thread.
    Handler,
    /// A signal handler that interrupted a handler.
    NestedHandler,
    /// A handler of a fault (SIGSEGV, SIGBUS, SIGFPE, SIGTRAP, ...), which no mask can put off.
    FaultHandler,
}

/// A way to count. Additions wrap.
pub trait LocalCounter {
    /// What the way is called in tables and results.
    const NAME: &'static str;

    /// Where it may be used, and still lose nothing.
    const CONTEXTS: &'static [Context];

    /// The bytes that one counter takes (in each lane, for [`PerCpu`]).
    const BYTES: usize;

    /// The value.
    fn read(&self) -> i64;

    /// Makes the value another. What handlers add meanwhile comes on top or is overwritten, whole.
    fn set(&self, value: i64);

    /// Adds.
    fn add(&self, n: i64);

    /// Adds and returns the new value: of the counter, or of one lane for [`PerCpu`].
    fn add_return(&self, n: i64) -> i64;

    /// Adds 1.
    #[inline(always)]
    fn inc(&self) {
        self.add(1);
    }

    /// Subtracts 1.
    #[inline(always)]
    fn dec(&self) {
        self.add(-1);
    }

    /// Subtracts.
    #[inline(always)]
    fn sub(&self, n: i64) {
        self.add(n.wrapping_neg());
    }
}

impl<W: LocalCounter> LocalCounter for &W {
    const NAME: &'static str = W::NAME;
    const CONTEXTS: &'static [Context] = W::CONTEXTS;
    const BYTES: usize = W::BYTES;

    #[inline(always)]
    fn read(&self) -> i64 {
        W::read(self)
    }

    #[inline(always)]
    fn set(&self, value: i64) {
        W::set(self, value);
    }

    #[inline(always)]
    fn add(&self, n: i64) {
        W::add(self, n);
    }

    #[inline(always)]
    fn add_return(&self, n: i64) -> i64 {
        W::add_return(self, n)
    }

    #[inline(always)]
    fn inc(&self) {
        W::inc(self);
    }

    #[inline(always)]
    fn dec(&self) {
        W::dec(self);
    }

    #[inline(always)]
    fn sub(&self, n: i64) {
        W::sub(self, n);
    }
}

/// Keeps a type from being `Sync`.
type ThreadOwned = core::marker::PhantomData<core::cell::Cell<()>>;

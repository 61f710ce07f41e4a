//! A word for each context, so that no two contexts that can interrupt each other share one.
//!
//! The thread adds to the first word, a handler to the second, a handler that interrupted a handler
//! to the third; the value is their sum. Nothing needs protection: whoever interrupts an addition
//! adds elsewhere. It needs three times the memory, and each bump looks up its context.
//!
//! User space cannot ask which context it is in, so a handler says so by entering a [`Context`]. Below
//! the third level all share the third word, and then it is locked instructions that keep them
//! apart.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicI64, AtomicU32, compiler_fence};

use super::{LocalCounter, ThreadOwned};

/// Three words, of which each context changes its own.
///
/// Where: thread, handler, nested handler, fault handler; handlers must enter a [`Context`] first.
/// Memory: 24 bytes, and 4 bytes a thread.
#[derive(Debug, Default)]
pub struct TriValue {
    words: [AtomicI64; 3],
    _owned: ThreadOwned,
}

std::thread_local! {
    /// How many handlers this thread is in. Constant and without a destructor, so a handler may be the
    /// first to use it; plain loads and stores, as only the thread and its handlers touch it.
    static DEPTH: AtomicU32 = const { AtomicU32::new(0) };
}

/// The context of a handler, while it lives. Make it the first thing in a handler that counts.
///
/// # Examples
///
/// ```
/// use countersink_percpu::local::trivalue::Context;
///
/// extern "C" fn handler(_signal: i32) {
///     let _context = Context::enter();
///     // ... count here ...
/// }
/// ```
#[derive(Debug)]
#[must_use = "the context ends when this is dropped"]
pub struct Context {
    _of_this_thread: PhantomData<*const ()>,
}

impl Context {
    /// Enters the context of a handler that interrupted the present one.
    #[inline(always)]
    pub fn enter() -> Self {
        // A handler that interrupts this between load and store restores what it found.
        DEPTH.with(|depth| depth.store(depth.load(Relaxed) + 1, Relaxed));
        compiler_fence(core::sync::atomic::Ordering::SeqCst);
        Context {
            _of_this_thread: PhantomData,
        }
    }
}

impl Drop for Context {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(core::sync::atomic::Ordering::SeqCst);
        DEPTH.with(|depth| depth.store(depth.load(Relaxed) - 1, Relaxed));
    }
}

impl TriValue {
    /// The sum over the words.
    #[inline(always)]
    fn sum(&self) -> i64 {
        let [thread, handler, nested] = &self.words;
        thread
            .load(Relaxed)
            .wrapping_add(handler.load(Relaxed))
            .wrapping_add(nested.load(Relaxed))
    }
}

impl LocalCounter for TriValue {
    const NAME: &'static str = "trivalue";
    const CONTEXTS: &'static [super::Context] = &[
        super::Context::Thread,
        super::Context::Handler,
        super::Context::NestedHandler,
        super::Context::FaultHandler,
    ];
    const BYTES: usize = size_of::<Self>();

    #[inline(always)]
    fn read(&self) -> i64 {
        self.sum()
    }

    #[inline(always)]
    fn set(&self, value: i64) {
        self.add(value.wrapping_sub(self.sum()));
    }

    #[inline(always)]
    fn add(&self, n: i64) {
        let depth = DEPTH.with(|depth| depth.load(Relaxed));
        match self.words.get(depth as usize) {
            Some(word) if depth < 2 => word.store(word.load(Relaxed).wrapping_add(n), Relaxed),
            _ => {
                self.words[2].fetch_add(n, Relaxed);
            }
        }
    }

    /// Adds and returns the sum, between the counter's value after the addition and the one at the
    /// return where handlers only add upwards meanwhile. As for [`read`](LocalCounter::read), the words
    /// are loaded one after the other: handlers that interrupt the loads and go both up and down can
    /// make a sum that the counter never had.
    #[inline(always)]
    fn add_return(&self, n: i64) -> i64 {
        self.add(n);
        self.sum()
    }
}

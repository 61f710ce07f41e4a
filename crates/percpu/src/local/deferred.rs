//! Soft interrupt disabling: handlers are put off while a word says so.
//!
//! What kernels do where blocking interrupts is dear, and the honest user-space form of irqsave: the
//! thread marks itself masked, adds, and clears the mark. A signal that comes in between finds the
//! mark, notes itself as pending and returns; clearing the mark runs what is pending. The common
//! case is two stores and a load, in the thread's own memory, and no system call.
//!
//! Only handlers installed with [`install`] are put off. They take no `siginfo`: by the time they
//! run it is history.
#![allow(unsafe_code)]

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, AtomicUsize, compiler_fence};
use std::io;

use libc::c_int;

use super::{Context, LocalCounter, ThreadOwned};

/// A word changed while handlers are put off.
///
/// Where: thread, handler, nested handler; handlers must be installed with [`install`]. Not in fault
/// handlers: a fault that is put off happens again. Memory: 8 bytes, and 280 bytes a thread.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Deferred(AtomicI64, ThreadOwned);

impl Deferred {
    /// Plain load and store, see [`masked`].
    #[inline(always)]
    fn change(&self, change: impl FnOnce(i64) -> i64) -> i64 {
        masked(|| {
            let value = change(self.0.load(Relaxed));
            self.0.store(value, Relaxed);
            value
        })
    }
}

impl LocalCounter for Deferred {
    const NAME: &'static str = "deferred";
    const CONTEXTS: &'static [Context] =
        &[Context::Thread, Context::Handler, Context::NestedHandler];
    const BYTES: usize = size_of::<Self>();

    #[inline(always)]
    fn read(&self) -> i64 {
        self.0.load(Relaxed)
    }

    #[inline(always)]
    fn set(&self, value: i64) {
        // One store; there is nothing to protect.
        self.0.store(value, Relaxed);
    }

    #[inline(always)]
    fn add(&self, n: i64) {
        self.change(|value| value.wrapping_add(n));
    }

    #[inline(always)]
    fn add_return(&self, n: i64) -> i64 {
        self.change(|value| value.wrapping_add(n))
    }
}

/// One more than the largest signal number.
const SIGNALS: usize = 65;

/// A thread's mark and what waits for it to be cleared.
///
/// Only the thread and its handlers touch it, so loads and stores of the atomic types are plain ones;
/// the types keep the compiler from assuming that nothing comes in between.
struct Thread {
    /// How many masked pieces of code the thread is in.
    depth: AtomicU32,
    /// The signals whose count below is not 0: bit 0 for signal 1.
    waiting: AtomicU64,
    /// How often each signal came while it was masked.
    pending: [AtomicU32; SIGNALS],
}

std::thread_local! {
    // Constant and without a destructor, so a handler may be the first to use it.
    static THREAD: Thread = const {
        Thread {
            depth: AtomicU32::new(0),
            waiting: AtomicU64::new(0),
            pending: [const { AtomicU32::new(0) }; SIGNALS],
        }
    };
}

/// The handlers installed, as addresses; 0 for none.
static HANDLERS: [AtomicUsize; SIGNALS] = [const { AtomicUsize::new(0) }; SIGNALS];

/// A signal's bit in [`Thread::waiting`].
fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

/// Runs a piece of code during which this thread's handlers are put off. May be nested.
#[inline(always)]
pub fn masked<R>(code: impl FnOnce() -> R) -> R {
    THREAD.with(|thread| {
        let _mark = Mark::set(thread);
        code()
    })
}

/// A thread's mark while it lives, that is, also until a panic has left the code.
struct Mark<'a> {
    thread: &'a Thread,
    depth_before: u32,
}

impl<'a> Mark<'a> {
    #[inline(always)]
    fn set(thread: &'a Thread) -> Self {
        let depth_before = thread.depth.load(Relaxed);
        thread.depth.store(depth_before + 1, Relaxed);
        // The handler runs on this thread, so only the compiler must keep the order; SeqCst, because a
        // store comes before a load.
        compiler_fence(SeqCst);
        Mark {
            thread,
            depth_before,
        }
    }
}

impl Drop for Mark<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(SeqCst);
        self.thread.depth.store(self.depth_before, Relaxed);
        compiler_fence(SeqCst);
        // A signal from here on runs its handler at once; one before is found pending.
        if self.depth_before == 0 && self.thread.waiting.load(Relaxed) != 0 {
            run_pending(self.thread);
        }
    }
}

/// Runs the handlers that were put off, each as often as its signal came.
///
/// A signal that is blocked is left alone. Either its handler is running, and this mark was set in
/// it or in a handler that interrupted it: then the mark that was being cleared when that handler came
/// finds the signal still waiting. Or the program blocked it: then a mark after that finds it.
#[cold]
#[inline(never)]
fn run_pending(thread: &Thread) {
    // The thread was in the middle of something that may look at errno.
    let error = io::Error::last_os_error().raw_os_error();
    let mut left_alone = 0;
    loop {
        // Handlers may come in between and run what is waiting, so look again each time.
        let waiting = thread.waiting.load(Relaxed) & !left_alone;
        if waiting == 0 {
            break;
        }
        let signal = waiting.trailing_zeros() as c_int + 1;
        let Some(_blocked) = Blocked::new(signal) else {
            left_alone |= bit(signal);
            continue;
        };
        thread.waiting.fetch_and(!bit(signal), Relaxed);
        let count = &thread.pending[signal as usize];
        for _ in 0..count.swap(0, Relaxed) {
            call(signal);
        }
    }
    if let Some(error) = error {
        // SAFETY: the C library's error number of this thread.
        unsafe { *errno() = error };
    }
}

/// Runs `handler` for each `signal`, at once or when the interrupted thread's mark is cleared.
///
/// As with any handler: it interrupts whatever code is running, must be async-signal-safe, and is not
/// interrupted by its own signal. Interrupted system calls are restarted. Signals that were put off
/// run in the order of their numbers. It is for the whole process and stays until the signal's action
/// is changed otherwise; a second call changes the handler.
///
/// # Errors
/// Those of `sigaction`: no such signal, or one that cannot be handled.
///
/// # Safety
/// The handler does only what is async-signal-safe: it must not look at what the interrupted code may
/// be in the middle of changing.
pub unsafe fn install(signal: c_int, handler: fn(c_int)) -> io::Result<()> {
    let Some(entry) = usize::try_from(signal)
        .ok()
        .and_then(|signal| HANDLERS.get(signal))
    else {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    };
    // Release pairs with the acquire in call(): the shim, once installed, finds the handler.
    entry.store(handler as usize, Release);
    // SAFETY: the structure is zeroed, then filled; the shim has the type that goes without
    // SA_SIGINFO.
    let result = unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = shim as extern "C" fn(c_int) as usize;
        action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(signal, &action, core::ptr::null_mut())
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// What the kernel calls.
extern "C" fn shim(signal: c_int) {
    THREAD.with(|thread| {
        if thread.depth.load(Relaxed) == 0 {
            return call(signal);
        }
        if let Some(count) = thread.pending.get(signal as usize) {
            // Another signal's shim can interrupt this one, but not the same signal's.
            count.store(count.load(Relaxed).saturating_add(1), Relaxed);
            thread.waiting.fetch_or(bit(signal), Relaxed);
        }
    });
}

fn call(signal: c_int) {
    let handler = HANDLERS
        .get(signal as usize)
        .map_or(0, |entry| entry.load(Acquire));
    if handler != 0 {
        // SAFETY: install() stored a function of this type.
        let handler = unsafe { core::mem::transmute::<usize, fn(c_int)>(handler) };
        handler(signal);
    }
}

/// One signal blocked while it lives, as it is while the kernel runs its handler.
struct Blocked(libc::sigset_t);

impl Blocked {
    /// `None` if it is blocked already.
    fn new(signal: c_int) -> Option<Self> {
        // SAFETY: both sets are plain data that the calls fill.
        unsafe {
            let mut set = core::mem::zeroed();
            let mut before = core::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, signal);
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut before);
            (libc::sigismember(&before, signal) == 0).then(|| Blocked(before))
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the set that was in force before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, core::ptr::null_mut()) };
    }
}

/// Where the C library keeps this thread's error number.
fn errno() -> *mut c_int {
    #[cfg(any(target_os = "android", target_os = "netbsd", target_os = "openbsd"))]
    use libc::__errno as location;
    #[cfg(not(any(
        target_vendor = "apple",
        target_os = "freebsd",
        target_os = "android",
        target_os = "netbsd",
        target_os = "openbsd"
    )))]
    use libc::__errno_location as location;
    #[cfg(any(target_vendor = "apple", target_os = "freebsd"))]
    use libc::__error as location;
    // SAFETY: no preconditions.
    unsafe { location() }
}

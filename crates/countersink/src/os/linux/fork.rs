//! Knowing that the process has forked: a child has copies of all handles, so what they name must not
//! be used for anything else. And keeping forks from happening while locks are held.
#![allow(unsafe_code)]

use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static FORKS: AtomicU32 = AtomicU32::new(0);

/// At load, since the first use of a metric may be in a signal handler, and this allocates. And since a
/// fork may come in the middle of anything later.
#[used]
#[unsafe(link_section = ".init_array.65535")]
static AT_LOAD: extern "C" fn() = watch;

extern "C" fn watch() {
    unsafe extern "C" fn before() {
        FORKS.fetch_add(1, SeqCst);
        close();
    }
    unsafe extern "C" fn after() {
        open();
    }
    unsafe extern "C" fn child() {
        open();
        crate::bounded::forked();
    }
    // SAFETY: safe functions of this object, which is never unloaded: it contains sections.
    unsafe { libc::pthread_atfork(Some(before), Some(after), Some(child)) };
}

/// How often this process, and those that it is a copy of, have forked. A fork by a bare system call
/// is not seen.
pub(crate) fn forks() -> u32 {
    FORKS.load(SeqCst)
}

/// Held while a lock may be held that a child needs, so that no fork happens then: the child would find
/// it taken, by a thread that it does not have.
///
/// A handler may fork that interrupted whoever holds the gate; then the child has the thread that holds the
/// lock, and nothing is waited for. And functions that others run at a fork may come here, on the thread that forks.
pub(crate) struct Gate(Option<RwLockReadGuard<'static, ()>>);

/// Nothing panics with it held.
static GATE: RwLock<()> = RwLock::new(());

thread_local! {
    /// How many gates this thread holds. Both need no destructor, so that they allocate nothing.
    static HELD: Cell<u32> = const { Cell::new(0) };
    /// Whether this thread is forking.
    static FORKING: Cell<bool> = const { Cell::new(false) };
}

impl Gate {
    /// Waits for a fork to end that is under way on another thread.
    pub(crate) fn enter() -> Self {
        if FORKING.get() {
            return Gate(None);
        }
        // Before the lock: a handler in between must not wait for it.
        HELD.set(HELD.get() + 1);
        Gate(Some(GATE.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        if let Some(guard) = self.0.take() {
            drop(guard);
            HELD.set(HELD.get() - 1);
        }
    }
}

/// What the thread that forks holds meanwhile: written by whoever has just taken the lock, and by
/// nobody else until it is given back.
struct Closed(UnsafeCell<Option<RwLockWriteGuard<'static, ()>>>);

// SAFETY: as it says.
unsafe impl Sync for Closed {}

static CLOSED: Closed = Closed(UnsafeCell::new(None));

fn close() {
    if HELD.get() > 0 || FORKING.get() {
        return;
    }
    let guard = GATE.write().unwrap_or_else(PoisonError::into_inner);
    FORKING.set(true);
    // SAFETY: this thread has the lock.
    unsafe { *CLOSED.0.get() = Some(guard) };
}

fn open() {
    if FORKING.replace(false) {
        // SAFETY: this thread, or in the child its copy, has had the lock since close().
        let guard = unsafe { (*CLOSED.0.get()).take() };
        drop(guard);
    }
}

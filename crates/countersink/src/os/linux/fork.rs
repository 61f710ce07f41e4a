//! Knowing that the process has forked: a child has copies of all handles, so what they name must not
//! be used for anything else. And keeping forks from happening while locks are held.
#![allow(unsafe_code)]

use core::cell::Cell;
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
    // SAFETY: safe functions of this object, which is never unloaded: it contains sections.
    unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) };
}

/// How often this process, and those that it is a copy of, have forked. A fork by a bare system call
/// is not seen.
pub(crate) fn forks() -> u32 {
    FORKS.load(SeqCst)
}

/// Held while a lock may be held that a child needs, so that no fork happens then: the child would find
/// it taken, by a thread that it does not have.
pub(crate) struct Gate(
    #[expect(dead_code, reason = "held, not used")] RwLockReadGuard<'static, ()>,
);

/// Nothing panics with it held.
static GATE: RwLock<()> = RwLock::new(());

thread_local! {
    /// What the thread that forks holds meanwhile.
    static CLOSED: Cell<Option<RwLockWriteGuard<'static, ()>>> = const { Cell::new(None) };
}

impl Gate {
    /// Waits for a fork to end that is under way.
    pub(crate) fn enter() -> Self {
        Gate(GATE.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn close() {
    let guard = GATE.write().unwrap_or_else(PoisonError::into_inner);
    // A thread that forks in its last destructors has no place to keep it.
    let _ = CLOSED.try_with(|closed| closed.set(Some(guard)));
}

fn open() {
    let _ = CLOSED.try_with(Cell::take);
}

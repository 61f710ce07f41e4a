//! Knowing that the process has forked: a child has copies of all handles, so what they name must not
//! be used for anything else.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicU32, Ordering::SeqCst};

static FORKS: AtomicU32 = AtomicU32::new(0);

/// At load, since the first use of a metric may be in a signal handler, and this allocates.
#[used]
#[unsafe(link_section = ".init_array.65535")]
static AT_LOAD: extern "C" fn() = watch;

extern "C" fn watch() {
    unsafe extern "C" fn count() {
        FORKS.fetch_add(1, SeqCst);
    }
    // SAFETY: the handler only counts, and this object is never unloaded: it contains sections.
    unsafe { libc::pthread_atfork(Some(count), None, None) };
}

/// How often this process, and those that it is a copy of, have forked. A fork by a bare system call
/// is not seen.
pub(crate) fn forks() -> u32 {
    FORKS.load(SeqCst)
}

/// Has functions called before each fork, and after it in both processes.
pub(crate) fn at_fork(before: extern "C" fn(), after: extern "C" fn()) {
    let before: unsafe extern "C" fn() = before;
    let after: unsafe extern "C" fn() = after;
    // SAFETY: safe functions of this object, which is never unloaded.
    unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) };
}

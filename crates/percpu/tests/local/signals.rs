//! Handlers for tests.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};

use countersink_percpu::local::{deferred, trivalue};
use libc::c_int;

use crate::ways::Entry;

/// Handlers belong to the whole process: whoever installs some in it holds this meanwhile.
pub(crate) fn exclusive() -> MutexGuard<'static, ()> {
    static HANDLERS: Mutex<()> = Mutex::new(());
    HANDLERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a signal's handler does after it has entered, as an address; 0 for nothing.
static BODIES: [AtomicUsize; 65] = [const { AtomicUsize::new(0) }; 65];

fn body(signal: c_int) {
    let body = BODIES[signal as usize].load(SeqCst);
    if body != 0 {
        // SAFETY: install() stored a function of this type.
        unsafe { core::mem::transmute::<usize, fn(c_int)>(body)(signal) };
    }
}

extern "C" fn plain(signal: c_int) {
    body(signal);
}

extern "C" fn in_context(signal: c_int) {
    let _context = trivalue::Context::enter();
    body(signal);
}

/// Installs a handler that enters as `entry` says and then does `handler`.
pub(crate) fn install(signal: c_int, entry: Entry, handler: fn(c_int)) {
    BODIES[signal as usize].store(handler as usize, SeqCst);
    match entry {
        Entry::Plain => act(signal, plain),
        Entry::Context => act(signal, in_context),
        // SAFETY: the bodies here are made for handlers.
        Entry::Deferred => unsafe { deferred::install(signal, body) }.expect("a signal to handle"),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        Entry::Reference => act(signal, in_reference_context),
        #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
        Entry::Reference => unreachable!("no mutants here"),
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
extern "C" fn in_reference_context(signal: c_int) {
    crate::mutants::in_context(|| body(signal));
}

fn act(signal: c_int, handler: extern "C" fn(c_int)) {
    // SAFETY: the structure is zeroed, then filled; the handler has the type that goes without
    // SA_SIGINFO.
    let result = unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(signal, &action, core::ptr::null_mut())
    };
    assert_eq!(result, 0, "signal {signal}");
}

/// Sends this thread a signal, which has run its handler, or was put off, when this returns.
pub(crate) fn raise(signal: c_int) {
    // SAFETY: no preconditions.
    assert_eq!(unsafe { libc::raise(signal) }, 0);
}

//! Handlers for tests.
#![allow(unsafe_code)]

use std::sync::{Mutex, MutexGuard, PoisonError};

use libc::c_int;

/// Handlers belong to the whole process: whoever installs some in it holds this meanwhile.
pub(crate) fn exclusive() -> MutexGuard<'static, ()> {
    static HANDLERS: Mutex<()> = Mutex::new(());
    HANDLERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Installs a handler. Others may interrupt it; system calls go on after it.
pub(crate) fn handle(signal: c_int, handler: extern "C" fn(c_int)) {
    install(signal, handler, libc::SA_RESTART);
}

/// Installs a handler that its own signal may interrupt too.
pub(crate) fn handle_nested(signal: c_int, handler: extern "C" fn(c_int)) {
    install(signal, handler, libc::SA_RESTART | libc::SA_NODEFER);
}

fn install(signal: c_int, handler: extern "C" fn(c_int), flags: c_int) {
    // SAFETY: the structure is zeroed, then filled; the handler has the type that goes without
    // SA_SIGINFO.
    let result = unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = flags;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(signal, &action, core::ptr::null_mut())
    };
    assert_eq!(result, 0, "signal {signal}");
}

/// Sends this thread a signal, whose handler has run when this returns.
pub(crate) fn raise(signal: c_int) {
    // SAFETY: no preconditions.
    assert_eq!(unsafe { libc::raise(signal) }, 0);
}

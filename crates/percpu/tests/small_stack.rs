//! The first use may be in a signal handler, and on the 8 KiB that Rust gives handlers' stacks.
#![cfg(all(target_os = "linux", not(countersink_portable)))]
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// What a handler's stack has; below it lies a page that must not be touched.
const STACK: usize = 8192;
const PAGE: usize = 4096;

static CPUS: AtomicU32 = AtomicU32::new(0);

extern "C" fn first_use(_: libc::c_int) {
    CPUS.store(countersink_percpu::choice().cpus, SeqCst);
}

#[test]
fn the_first_use_fits_a_handlers_stack() {
    // SAFETY: no preconditions.
    let frame = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize;
    if frame > STACK / 2 {
        println!("NOT TESTED: the kernel's own part of the stack takes {frame} bytes here");
        return;
    }
    // SAFETY: new memory, of which the lowest page is closed, becomes this thread's stack for handlers;
    // the handler only does what may be the first use.
    unsafe {
        let memory = libc::mmap(
            core::ptr::null_mut(),
            PAGE + STACK,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        assert_ne!(memory, libc::MAP_FAILED);
        assert_eq!(libc::mprotect(memory, PAGE, libc::PROT_NONE), 0);
        let stack = libc::stack_t {
            ss_sp: memory.byte_add(PAGE),
            ss_flags: 0,
            ss_size: STACK,
        };
        assert_eq!(libc::sigaltstack(&stack, core::ptr::null_mut()), 0);
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = first_use as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_ONSTACK;
        assert_eq!(
            libc::sigaction(libc::SIGUSR1, &action, core::ptr::null_mut()),
            0
        );
        assert_eq!(libc::raise(libc::SIGUSR1), 0);
    }
    assert_ne!(CPUS.load(SeqCst), 0);
}

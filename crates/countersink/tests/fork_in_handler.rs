//! Forks in a handler that interrupted a family's look-up: the thread that forks holds the lock that a fork
//! waits for. With a gate that only waits, this hangs, and an alarm ends it.
//!
//! A program of its own, without the test harness: in a program with threads the C library's own fork
//! waits for the allocator, which the handler may have interrupted.
#![allow(unsafe_code)]

fn main() {
    #[cfg(all(target_os = "linux", not(countersink_portable)))]
    linux::run();
}

#[cfg(all(target_os = "linux", not(countersink_portable)))]
mod linux {
    use std::sync::atomic::AtomicU32;
    use std::sync::atomic::Ordering::Relaxed;

    use countersink::{Counter, Family};

    static MEMBERS: Family<Counter> = Family::new(Counter::new("members"), ["number"]);

    /// Forks so far.
    static FORKED: AtomicU32 = AtomicU32::new(0);
    const FORKS: u32 = 200;
    /// Takes a hundredth of it.
    const MOST_SECONDS: u32 = 120;

    extern "C" fn fork_and_wait(_: libc::c_int) {
        // SAFETY: what a crash handler does as well.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::_exit(0);
            }
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
        FORKED.fetch_add(1, Relaxed);
    }

    pub(crate) fn run() {
        MEMBERS.with(["a"]).inc();
        let every = libc::timeval {
            tv_sec: 0,
            tv_usec: 1000,
        };
        let timer = libc::itimerval {
            it_interval: every,
            it_value: every,
        };
        let handler: extern "C" fn(libc::c_int) = fork_and_wait;
        // SAFETY: a handler as above, a timer for it, and an alarm that nobody handles.
        unsafe {
            libc::alarm(MOST_SECONDS);
            libc::signal(libc::SIGPROF, handler as libc::sighandler_t);
            libc::setitimer(libc::ITIMER_PROF, &timer, std::ptr::null_mut());
        }
        let mut counted = 1;
        while FORKED.load(Relaxed) < FORKS {
            MEMBERS.with(["a"]).inc();
            counted += 1;
        }
        // SAFETY: as above; the default would end the process.
        unsafe { libc::signal(libc::SIGPROF, libc::SIG_IGN) };
        assert_eq!(MEMBERS.with(["a"]).sum(), counted);
        println!("{FORKS} forks, {counted} look-ups");
    }
}

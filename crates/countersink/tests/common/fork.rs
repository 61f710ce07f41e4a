//! Children that share the region, and can be killed.
#![allow(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use libc::{c_int, pid_t};

/// A process that was forked.
#[derive(Debug)]
#[must_use = "a child has to be waited for"]
pub(crate) struct Child(pub(crate) pid_t);

/// Forks a child that ends with the body, by `_exit`: with status 0, or 101 if the body panics.
///
/// The C library makes its allocator usable in the child. The body must not need other locks that
/// another thread may hold now; where that is so, the hang is what the test is about.
pub(crate) fn fork(body: impl FnOnce()) -> Child {
    let parent = std::process::id();
    // SAFETY: see above; a child that hangs is ended by its alarm.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "no fork: {}", std::io::Error::last_os_error());
    if pid == 0 {
        // SAFETY: no preconditions; a child does not outlive the thread that forked it.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        if std::os::unix::process::parent_id() != parent {
            // It died before it could be asked for that. SAFETY: ends the child at once.
            unsafe { libc::_exit(101) };
        }
        super::child::end_if_it_hangs();
        let result = catch_unwind(AssertUnwindSafe(body));
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(if result.is_ok() { 0 } else { 101 }) };
    }
    Child(pid)
}

impl Child {
    /// Waits for its end; the raw status.
    pub(crate) fn wait(self) -> c_int {
        let mut status = 0;
        // SAFETY: our child; the call fills the status.
        while unsafe { libc::waitpid(self.0, &mut status, 0) } != self.0 {
            let error = std::io::Error::last_os_error();
            assert_eq!(error.kind(), std::io::ErrorKind::Interrupted, "{error}");
        }
        status
    }

    /// Waits for its end, which has to be a good one.
    pub(crate) fn wait_well(self) {
        assert_eq!(self.wait(), 0, "a child's status");
    }

    /// Kills it, and waits until it is gone.
    pub(crate) fn kill(self) {
        assert_eq!(self.kill_if_alive(), libc::SIGKILL, "killed, and by us");
    }

    /// The same where it may have ended just before; the raw status.
    pub(crate) fn kill_if_alive(self) -> c_int {
        // SAFETY: our child, which nobody has waited for.
        assert_eq!(unsafe { libc::kill(self.0, libc::SIGKILL) }, 0);
        self.wait()
    }
}

//! Waiting that Ctrl-C ends.
#![cfg_attr(target_os = "linux", allow(unsafe_code))]

use std::time::Duration;

/// While this lives, and after it: Ctrl-C does not end the process but the next wait.
///
/// Processes that `std` starts have it unblocked again.
#[derive(Debug)]
pub(crate) struct Interrupts(os::Set);

impl Interrupts {
    /// Holds Ctrl-C back, in this thread and those that it starts.
    pub(crate) fn hold() -> Self {
        Interrupts(os::hold())
    }

    /// Lets Ctrl-C end the process again, in this thread.
    pub(crate) fn release(self) {
        os::release(&self.0);
    }

    /// Waits so long, or until Ctrl-C: then `true`.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        os::wait(&self.0, time)
    }
}

#[cfg(target_os = "linux")]
mod os {
    use std::io;
    use std::mem::MaybeUninit;
    use std::ptr;
    use std::time::{Duration, Instant};

    pub(super) type Set = libc::sigset_t;

    pub(super) fn hold() -> Set {
        let mut set = MaybeUninit::uninit();
        // SAFETY: `sigemptyset` initialises the set, and does not fail; the others have it to read and
        // to write. Blocking a signal breaks no code of this process: nothing here handles SIGINT.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            let mut set = set.assume_init();
            libc::sigaddset(&mut set, libc::SIGINT);
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, ptr::null_mut());
            set
        }
    }

    pub(super) fn release(set: &Set) {
        // SAFETY: the set is there to read.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, set, ptr::null_mut()) };
    }

    pub(super) fn wait(set: &Set, time: Duration) -> bool {
        let end = Instant::now().checked_add(time);
        loop {
            let left = end.map_or(Duration::MAX, |end| {
                end.saturating_duration_since(Instant::now())
            });
            let left = libc::timespec {
                tv_sec: left.as_secs().min(i32::MAX as u64) as libc::time_t,
                tv_nsec: left.subsec_nanos().into(),
            };
            // SAFETY: both are there to read, and no information is asked for.
            let signal = unsafe { libc::sigtimedwait(set, ptr::null_mut(), &left) };
            let again = io::Error::last_os_error().kind() == io::ErrorKind::Interrupted;
            if signal != -1 || !again {
                return signal == libc::SIGINT;
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod os {
    use std::time::Duration;

    pub(super) type Set = ();

    pub(super) fn hold() -> Set {}

    pub(super) fn release((): &Set) {}

    pub(super) fn wait((): &Set, time: Duration) -> bool {
        std::thread::sleep(time);
        false
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_by_time_or_by_the_signal() {
        // A thread of its own, since the mask stays.
        let waits = std::thread::spawn(|| {
            let interrupts = Interrupts::hold();
            let timed_out = !interrupts.wait(Duration::from_millis(1));
            // SAFETY: the signal is blocked in this thread, which it is sent to.
            unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGINT) };
            (timed_out, interrupts.wait(Duration::from_secs(3600)))
        });
        assert_eq!(waits.join().expect("it ends"), (true, true));
    }
}

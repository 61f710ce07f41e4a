//! A timer that signals one thread.
#![allow(unsafe_code)]

use libc::{c_int, c_long, timer_t};

/// Sends the thread that started it a signal in each period, until dropped.
#[derive(Debug)]
pub(crate) struct Timer(timer_t);

impl Timer {
    pub(crate) fn start(signal: c_int, period_ns: c_long) -> Self {
        let period = libc::timespec {
            tv_sec: 0,
            tv_nsec: period_ns,
        };
        let times = libc::itimerspec {
            it_interval: period,
            it_value: period,
        };
        // SAFETY: plain data, filled here or by the calls.
        unsafe {
            let mut event: libc::sigevent = core::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer: timer_t = core::mem::zeroed();
            let result = libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer);
            assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
            assert_eq!(
                libc::timer_settime(timer, 0, &times, core::ptr::null_mut()),
                0
            );
            Timer(timer)
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: ours, and not used after this.
        unsafe { libc::timer_delete(self.0) };
    }
}

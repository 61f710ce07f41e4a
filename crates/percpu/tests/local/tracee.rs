//! A forked child that its parent single-steps.
#![allow(unsafe_code)]

use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use libc::{SIGTRAP, c_int, c_uint, pid_t};

use crate::board::{Board, SIGNALS, which};

/// The exit status of a child that may not be traced.
const NOT_TRACED: c_int = 77;

/// A stopped child, killed when dropped.
#[derive(Debug)]
pub(crate) struct Tracee {
    pid: pid_t,
    /// How many of each signal the kernel took from the queue to run its handler.
    pub(crate) delivered: [u64; 2],
    /// Its end, once it has ended.
    ended: Option<c_int>,
}

/// Why a child stopped.
enum Stop {
    /// A step, an `int3`, or the first instruction of a handler is next.
    Trap,
    /// A signal is about to be delivered.
    Signal(c_int),
    Ended,
}

impl Tracee {
    /// Forks a child and lets it run to its first [`pause`]; `None` where tracing is not allowed.
    ///
    /// # Safety
    /// Other threads may have held locks at the fork: `child` takes none, and does not allocate.
    pub(crate) unsafe fn start(child: impl FnOnce() -> c_int) -> Option<Self> {
        stay_on_one_cpu();
        // SAFETY: the caller's promise; the child ends by _exit.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0, "no fork");
        if pid == 0 {
            // SAFETY: plain system calls.
            unsafe {
                if libc::ptrace(libc::PTRACE_TRACEME) != 0 {
                    libc::_exit(NOT_TRACED);
                }
                libc::_exit(child());
            }
        }
        let mut tracee = Tracee {
            pid,
            delivered: [0; 2],
            ended: None,
        };
        match tracee.wait() {
            Stop::Ended if tracee.status() == Some(NOT_TRACED) => return None,
            Stop::Trap => {}
            _ => panic!("no first pause: status {:?}", tracee.ended),
        }
        // SAFETY: a stopped child of ours.
        let result =
            unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, libc::PTRACE_O_EXITKILL) };
        assert_eq!(result, 0);
        Some(tracee)
    }

    /// Queues a signal for the stopped child. It is delivered before the next instruction, unless it
    /// is blocked.
    pub(crate) fn send(&self, signal: c_int) {
        // SAFETY: no preconditions.
        let result = unsafe { libc::syscall(libc::SYS_tgkill, self.pid, self.pid, signal) };
        assert_eq!(result, 0);
    }

    /// Executes one instruction; or, where a signal is due, none, and the handler's first is next.
    pub(crate) fn step(&mut self) {
        self.resume(libc::PTRACE_SINGLESTEP);
        assert!(self.ended.is_none(), "died: status {:?}", self.ended);
    }

    /// Runs to the next [`pause`]; whether there was one before the child's end.
    pub(crate) fn run(&mut self) -> bool {
        self.resume(libc::PTRACE_CONT);
        self.ended.is_none()
    }

    /// The exit status, if it exited.
    pub(crate) fn status(&self) -> Option<c_int> {
        let status = self.ended?;
        libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status))
    }

    fn resume(&mut self, how: c_uint) {
        let mut signal = 0;
        loop {
            // SAFETY: a stopped child of ours.
            let result = unsafe { libc::ptrace(how, self.pid, 0, signal) };
            assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
            match self.wait() {
                Stop::Signal(due) => {
                    if SIGNALS.contains(&due) {
                        self.delivered[which(due)] += 1;
                    }
                    signal = due;
                }
                Stop::Trap | Stop::Ended => return,
            }
        }
    }

    fn wait(&mut self) -> Stop {
        let mut status = 0;
        loop {
            // SAFETY: our child; the call fills the status.
            let pid = unsafe { libc::waitpid(self.pid, &mut status, 0) };
            if pid == self.pid {
                break;
            }
            let error = std::io::Error::last_os_error();
            assert_eq!(error.kind(), std::io::ErrorKind::Interrupted, "{error}");
        }
        if !libc::WIFSTOPPED(status) {
            self.ended = Some(status);
            return Stop::Ended;
        }
        match libc::WSTOPSIG(status) {
            SIGTRAP => Stop::Trap,
            signal => Stop::Signal(signal),
        }
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        if self.ended.is_none() {
            // SAFETY: our child, which has not been waited for.
            unsafe {
                libc::kill(self.pid, libc::SIGKILL);
                libc::waitpid(self.pid, null_mut(), 0);
            }
        }
    }
}

/// Stops the child. Its own signal, so the tracer sees it whether it steps or not.
#[inline(always)]
pub(crate) fn pause() {
    // SAFETY: traced, the instruction stops the child, and does nothing else.
    unsafe { core::arch::asm!("int3", options(nostack)) };
}

/// Keeps this thread and the children that it forks on one CPU: a step is then two switches on it,
/// and no wake-up of another.
fn stay_on_one_cpu() {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: both sets are plain data, filled by the calls or the macros.
    unsafe {
        let mut allowed: libc::cpu_set_t = core::mem::zeroed();
        if libc::sched_getaffinity(0, size_of_val(&allowed), &mut allowed) != 0 {
            return;
        }
        let cpus = (0..libc::CPU_SETSIZE as usize).filter(|cpu| libc::CPU_ISSET(*cpu, &allowed));
        let count = libc::CPU_COUNT(&allowed).max(1) as usize;
        let Some(cpu) = cpus.into_iter().nth(NEXT.fetch_add(1, Relaxed) % count) else {
            return;
        };
        let mut one: libc::cpu_set_t = core::mem::zeroed();
        libc::CPU_SET(cpu, &mut one);
        // Only for speed: a failure changes nothing.
        libc::sched_setaffinity(0, size_of_val(&one), &one);
    }
}

/// A board in memory that children share. It stays.
pub(crate) fn shared_board() -> &'static Board {
    // SAFETY: a new mapping of zeros, which are a board with nothing on it.
    unsafe {
        let memory = libc::mmap(
            null_mut(),
            size_of::<Board>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        assert_ne!(memory, libc::MAP_FAILED, "no memory");
        &*memory.cast::<Board>()
    }
}

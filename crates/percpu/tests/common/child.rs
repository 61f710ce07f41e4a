//! Tests that need a process of their own: a fresh one, or one in which something is refused.
//!
//! The test program executes itself again, with only that test selected and a mark in the
//! environment; the test finds the mark and does its work.
#![allow(unsafe_code)]

use std::fmt::Write;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use countersink_percpu::{Choice, Mechanism, Reason, Registrar, choice, request};
use libc::c_int;

use super::libc_rseq;

/// Names the setting in a child's environment.
const MARK: &str = "COUNTERSINK_TEST_CHILD";

/// What a process can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// As this system is.
    AsIs,
    /// glibc's registration off, so that the library registers each thread.
    OwnRegistration,
    /// Locked lanes, because the program asks for them.
    Requested,
    /// The kernel refuses to register anybody, glibc included, with this error.
    Refused(c_int),
}

impl Setting {
    /// The mechanism and its reason that a process in this setting must choose.
    fn expected(self) -> (Mechanism, Reason) {
        if cfg!(countersink_portable) {
            return (Mechanism::ThreadLanes, Reason::Requested);
        }
        if cfg!(not(target_arch = "x86_64")) && self != Setting::Requested {
            return (Mechanism::LockedLanes, Reason::NoSections);
        }
        match self {
            Setting::AsIs if libc_rseq::registers() => (Mechanism::Rseq, Reason::LibcRegisters),
            Setting::AsIs | Setting::OwnRegistration => match libc_rseq::size() {
                Some(_) => (Mechanism::Rseq, Reason::LibcOff),
                None => (Mechanism::Rseq, Reason::LibcHasNone),
            },
            Setting::Requested => (Mechanism::LockedLanes, Reason::Requested),
            Setting::Refused(error) => (Mechanism::LockedLanes, Reason::Refused(error as u16)),
        }
    }

    /// Words of the sentence that tells the choice.
    fn words(self) -> [&'static str; 2] {
        let (mechanism, reason) = self.expected();
        let what = match mechanism {
            Mechanism::Rseq => "restartable sequences",
            Mechanism::LockedLanes => "locked operations on per-CPU lanes",
            _ => "locked operations on per-thread lanes",
        };
        let why = match reason {
            Reason::LibcRegisters => "the C library registers every thread",
            Reason::LibcOff => "registration is off",
            Reason::LibcHasNone => "does not register threads",
            Reason::Refused(error) if c_int::from(error) == libc::EPERM => {
                "Operation not permitted"
            }
            Reason::Refused(_) => "Function not implemented",
            Reason::NoSections => "no critical sections for",
            _ => "the program asked for it",
        };
        [what, why]
    }

    /// Makes the choice, and checks that it is the one expected.
    pub(crate) fn choose(self) -> Choice {
        let chosen = match self {
            Setting::Requested if cfg!(not(countersink_portable)) => {
                request(Mechanism::LockedLanes).expect("every Linux process can have them")
            }
            _ => choice(),
        };
        assert_eq!((chosen.mechanism, chosen.reason), self.expected());
        let registrar = match chosen.reason {
            Reason::LibcRegisters => Some(Registrar::Libc),
            Reason::LibcOff | Reason::LibcHasNone => Some(Registrar::Own),
            _ => None,
        };
        assert_eq!(chosen.registrar(), registrar);
        let sentence = chosen.to_string();
        for words in self.words() {
            assert!(sentence.contains(words), "{sentence:?} without {words:?}");
        }
        chosen
    }

    /// Prepares a process for it.
    fn prepare(self, command: &mut Command) {
        match self {
            Setting::OwnRegistration => {
                command.env("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
            }
            Setting::Refused(error) => {
                // SAFETY: runs between fork and exec: system calls and plain memory only.
                unsafe { command.pre_exec(move || refuse_rseq(error)) };
            }
            Setting::AsIs | Setting::Requested => {}
        }
    }
}

/// Whether this process was started by [`run`].
pub(crate) fn is_child() -> bool {
    std::env::var_os(MARK).is_some()
}

/// Runs the body of a test in a process of its own; it returns what the process counted, which is
/// not 0. `test` is the test's full name. The process has not made its choice yet.
pub(crate) fn run(test: &str, setting: Setting, body: impl FnOnce() -> u64) {
    let mark = format!("{setting:?}");
    let report = |total: u64| format!("{test}, {mark}: total {total}; ");
    if is_child() {
        if std::env::var(MARK).as_deref() == Ok(&mark) {
            let total = body();
            println!("\n{}{}", report(total), choice());
            // Not further: the test may start more children of other settings.
            std::process::exit(0);
        }
        return;
    }
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.env(MARK, &mark);
    setting.prepare(&mut command);
    let output = command.output().expect("the test program starts again");
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    let _ = write!(text, "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {text}", output.status);
    let begin = format!("{test}, {mark}: total ");
    let line = text.lines().find(|line| line.starts_with(&begin));
    let line = line.unwrap_or_else(|| panic!("no total: {text}"));
    assert!(!line.starts_with(&report(0)), "nothing counted: {text}");
    println!("{text}");
}

/// Runs the body in a process of its own in which the choice has been made and checked.
pub(crate) fn run_chosen(test: &str, setting: Setting, body: impl FnOnce() -> u64) {
    run(test, setting, || {
        setting.choose();
        body()
    });
}

/// Makes rseq fail from here on, across exec, so that the C library is refused as well.
fn refuse_rseq(error: c_int) -> io::Result<()> {
    let statement = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    // The number of the system call is the first word of what a filter sees.
    let mut filter = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            libc::SYS_rseq as u32,
            0,
            1,
        ),
        statement(
            libc::BPF_RET | libc::BPF_K,
            libc::SECCOMP_RET_ERRNO | error as u32,
            0,
            0,
        ),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the kernel copies the program, which lives until the call returns.
    let result = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

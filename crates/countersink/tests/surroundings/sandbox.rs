//! System calls that a sandbox refuses, and a root directory without `/proc` and `/sys`.
#![allow(unsafe_code)]

use crate::child::{Act, Child, argument, is_root};
use crate::work::{Crew, check};

pub(crate) const ACTS: &[Act] = &[("sandbox::count", count), ("sandbox::bare", bare)];

/// What the first use may call, by name.
const CALLS: &[(&str, libc::c_long)] = &[
    ("memfd_create", libc::SYS_memfd_create),
    ("mmap", libc::SYS_mmap),
    ("ftruncate", libc::SYS_ftruncate),
    ("mprotect", libc::SYS_mprotect),
    ("prctl", libc::SYS_prctl),
    ("sched_getaffinity", libc::SYS_sched_getaffinity),
    ("openat", libc::SYS_openat),
    ("read", libc::SYS_read),
    ("fstat", libc::SYS_fstat),
    ("newfstatat", libc::SYS_newfstatat),
    ("fcntl", libc::SYS_fcntl),
    ("fchmod", libc::SYS_fchmod),
    ("prlimit64", libc::SYS_prlimit64),
    ("madvise", libc::SYS_madvise),
    ("munlock", libc::SYS_munlock),
    ("clock_gettime", libc::SYS_clock_gettime),
    ("getcpu", libc::SYS_getcpu),
    ("rseq", libc::SYS_rseq),
];

/// Has calls fail with an error in all threads, from now on.
pub(crate) fn refuse(calls: &[libc::c_long], error: i32) {
    let statement = |code: u32, k: u32, jt: usize, jf: u8| libc::sock_filter {
        code: code as u16,
        jt: jt as u8,
        jf,
        k,
    };
    // The number of the system call is the first word of what a filter sees.
    let mut filter = vec![statement(
        libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
        0,
        0,
        0,
    )];
    for (number, call) in calls.iter().enumerate() {
        let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        filter.push(statement(equal, *call as u32, calls.len() - number, 0));
    }
    let end = libc::BPF_RET | libc::BPF_K;
    filter.push(statement(end, libc::SECCOMP_RET_ALLOW, 0, 0));
    filter.push(statement(end, libc::SECCOMP_RET_ERRNO | error as u32, 0, 0));
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the kernel copies the program, which lives until the call returns.
    let result = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_TSYNC,
            &raw const program,
        )
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

/// The numbers of calls: `NAME`, or all; the error number behind it.
pub(crate) fn refuse_named(argument: &str) {
    let (name, error) = argument.split_once('=').expect("a call and an error");
    let named = CALLS.iter().filter(|call| name == "all" || call.0 == name);
    let calls: Vec<_> = named.map(|call| call.1).collect();
    assert!(!calls.is_empty(), "{name}");
    refuse(&calls, error.parse().expect("a number"));
}

fn count() {
    // Memory that the test itself needs later.
    drop(vec![0_u8; 100_000]);
    let crew = Crew::hire();
    refuse_named(&argument());
    crew.work();
    check();
}

/// Where it counts when a call is refused.
fn expected(call: &str) -> &'static str {
    match call {
        "memfd_create" | "ftruncate" | "fcntl" | "fstat" => "private memory",
        "mmap" | "mprotect" | "all" => "nowhere",
        _ => "memfd",
    }
}

#[test]
fn calls_are_refused() {
    let names = CALLS.iter().map(|call| call.0).chain(["all"]);
    let cases = names.flat_map(|name| [(name, libc::EPERM), (name, libc::ENOSYS)]);
    // All of them, before the first one that is wrong is reported.
    let outcomes: Vec<_> = cases
        .map(|(name, error)| {
            let child = Child::new("sandbox::count").argument(format!("{name}={error}"));
            (name, error, child.start().end())
        })
        .collect();
    for (name, error, outcome) in &outcomes {
        println!(
            "{name} {error}: {}, {}",
            outcome.status,
            outcome.last_lines()
        );
    }
    for (name, error, outcome) in outcomes {
        assert!(outcome.status.success(), "{name}: {}", outcome.text);
        let (place, hindrance) = (outcome.value("place"), outcome.value("hindrance"));
        assert_eq!(place, expected(name), "{name}");
        assert_eq!(hindrance.is_empty(), place == "memfd", "{hindrance}");
        if place == "private memory" {
            let text = std::io::Error::from_raw_os_error(error).to_string();
            assert_eq!(hindrance, text);
        }
    }
}

/// Counts in an empty root directory.
fn bare() {
    let crew = Crew::hire();
    let root = std::ffi::CString::new(argument()).expect("a path");
    // SAFETY: a path that ends with zero.
    assert_eq!(unsafe { libc::chroot(root.as_ptr()) }, 0);
    std::env::set_current_dir("/").expect("the new root");
    crew.work();
    check();
}

#[test]
fn nothing_of_proc_and_sys_is_there() {
    if !is_root("chroot") {
        return;
    }
    let root = tempfile::tempdir().expect("a directory");
    let outcome = Child::new("sandbox::bare")
        .argument(root.path().display())
        .run();
    assert_eq!(
        (outcome.value("place"), outcome.value("home")),
        ("memfd", "region")
    );
}

//! The first use in a signal handler: `errno` stays, and a small stack is enough.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering::SeqCst};

use crate::child::{Act, Child, argument, tell};
use crate::forge::{memfd, path};
use crate::sandbox::refuse_named;
use crate::work::{COUNTER, GAUGE, HISTOGRAM, SPAN, tell_place};

pub(crate) const ACTS: &[Act] = &[("handler::first_use", first_use)];

/// What the handler uses first: a bit for each metric.
static USED: AtomicU32 = AtomicU32::new(0);
/// What `errno` was when it returned.
static ERRNO: AtomicI32 = AtomicI32::new(0);

const PAGE: usize = 4096;
/// Of the stack that is measured; more than anyone needs.
const STACK: usize = 64 * 1024;
const PAINT: u8 = 0xa5;

/// Each in a function of its own, so that unoptimised code has room for one only.
const USES: [fn(); 4] = [
    || COUNTER.inc(),
    || GAUGE.dec(),
    || SPAN.start().stop_bytes(5),
    || HISTOGRAM.record(77),
];

extern "C" fn handler(_: libc::c_int) {
    for (number, use_it) in USES.iter().enumerate() {
        if USED.load(SeqCst) >> number & 1 != 0 {
            use_it();
        }
    }
    // SAFETY: this thread's own.
    ERRNO.store(unsafe { *libc::__errno_location() }, SeqCst);
}

/// `USED [CALL=ERROR]`
fn first_use() {
    let argument = argument();
    let mut words = argument.split(' ');
    let used: u32 = words
        .next()
        .and_then(|word| word.parse().ok())
        .expect("a number");
    USED.store(used, SeqCst);
    let stack = install();
    if let Some(refused) = words.next() {
        refuse_named(refused);
    }
    // SAFETY: this thread's own number; the call sends the signal to this thread.
    let (returned, after) = unsafe {
        let errno = libc::__errno_location();
        *errno = 1234;
        let returned = libc::raise(libc::SIGUSR1);
        (returned, *errno)
    };
    assert_eq!((returned, ERRNO.load(SeqCst), after), (0, 1234, 1234));
    tell("stack", touched(stack));
    tell_place();
    assert_eq!(COUNTER.sum(), u64::from(used & 1));
    assert_eq!(GAUGE.value(), -i64::from(used >> 1 & 1));
    assert_eq!(SPAN.read().byte_events, u64::from(used >> 2 & 1));
    assert_eq!(HISTOGRAM.read().count(), u64::from(used >> 3 & 1));
}

/// A painted stack for handlers, above a page that must not be touched.
fn install() -> *const u8 {
    // SAFETY: new memory becomes this thread's stack for handlers.
    unsafe {
        let none = core::ptr::null_mut();
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let memory = libc::mmap(none, PAGE + STACK, access, kind, -1, 0);
        assert_ne!(memory, libc::MAP_FAILED);
        assert_eq!(libc::mprotect(memory, PAGE, libc::PROT_NONE), 0);
        let start = memory.cast::<u8>().add(PAGE);
        start.write_bytes(PAINT, STACK);
        let stack = libc::stack_t {
            ss_sp: start.cast(),
            ss_flags: 0,
            ss_size: STACK,
        };
        assert_eq!(libc::sigaltstack(&stack, core::ptr::null_mut()), 0);
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = handler as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_ONSTACK;
        assert_eq!(
            libc::sigaction(libc::SIGUSR1, &action, core::ptr::null_mut()),
            0
        );
        start
    }
}

/// How many bytes of the stack are not painted any more.
fn touched(stack: *const u8) -> usize {
    // SAFETY: the memory made above, which no handler uses now.
    let bytes = unsafe { core::slice::from_raw_parts(stack, STACK) };
    STACK - bytes.iter().take_while(|byte| **byte == PAINT).count()
}

/// The kernel's own part of a handler's stack.
fn frame() -> usize {
    // SAFETY: no preconditions.
    unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) as usize }
}

/// What the library may use of the 8 KiB that Rust gives handlers.
const MOST: usize = 8192 - 3500;

fn run(name: &str, child: Child, place: &str) {
    let outcome = child.run();
    let stack = outcome.number("stack") as usize;
    let own = stack.saturating_sub(frame());
    println!(
        "{name}: {own} bytes of stack besides the kernel's {}, {place}",
        frame()
    );
    assert_eq!(outcome.value("place"), place, "{name}");
    assert!(own <= MOST, "{name}: {own}");
}

const ALL: u32 = 15;

#[test]
fn each_metric_may_be_the_first() {
    for used in [0, 1, 2, 4, 8, ALL] {
        run(
            &format!("metrics {used:#06b}"),
            Child::new("handler::first_use").argument(used),
            "memfd",
        );
    }
}

#[test]
fn every_way_out_leaves_errno_and_fits_the_stack() {
    let child = || Child::new("handler::first_use");
    for (refused, place) in [
        ("memfd_create=1", "private memory"),
        ("memfd_create=38", "private memory"),
        ("ftruncate=1", "private memory"),
        ("mmap=1", "nowhere"),
        ("mprotect=1", "nowhere"),
        ("openat=1", "memfd"),
        ("prctl=1", "memfd"),
        ("prlimit64=1", "memfd"),
        ("clock_gettime=1", "memfd"),
        ("sched_getaffinity=1", "memfd"),
        ("all=1", "nowhere"),
        ("all=38", "nowhere"),
    ] {
        run(refused, child().argument(format!("{ALL} {refused}")), place);
        // Each thread would register itself, and may not.
        let child = child().env("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
        run(
            &format!("{refused}, rseq off"),
            child.argument(format!("{ALL} {refused}")),
            place,
        );
    }
    let refused = child().env("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
    run(
        "rseq refused",
        refused.argument(format!("{ALL} rseq=1")),
        "memfd",
    );

    let temporary = tempfile::tempdir().expect("a directory");
    let at = |name: &str| temporary.path().join(name);
    let directory = |name: &str| child().env("COUNTERSINK_DIR", at(name)).argument(ALL);
    std::fs::write(at("file"), "").expect("a file");
    run("directory", directory("new"), "file");
    run("directory with a slash", directory("new/"), "file");
    run("file for a directory", directory("file"), "memfd");
    run("missing directory", directory("a/b"), "memfd");
    let region = |name: &str| child().env("COUNTERSINK_REGION", at(name)).argument(ALL);
    run("no region", region("missing"), "memfd");
    run("empty region", region("file"), "memfd");
    let header = crate::join::header();
    let file = memfd(header.size(), &header.bytes(), true);
    let joined = child().env("COUNTERSINK_REGION", path(&file)).argument(ALL);
    run("region", joined, "region of another process");
}

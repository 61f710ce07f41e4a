//! Processes that count in the same memory.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use countersink_percpu::{Lane, Mechanism, Segment, Slot, choice};
use libc::{EPERM, c_int, pid_t};
use rustix::fs::MemfdFlags;

use crate::common::child::{self, Setting};
use crate::common::random::Random;

const PROCESSES: u64 = 6;
/// What each process counts.
const ADDS: u64 = 2_000_000;
/// How many children are killed.
const KILLS: u64 = 200;
const SEED: u64 = 0x5160_4b11;

/// Forks a child that ends with what `body` returns, by `_exit`.
///
/// # Safety
/// Other threads may have held locks at the fork: `body` takes none, and does not allocate.
unsafe fn fork(body: impl FnOnce() -> c_int) -> pid_t {
    // SAFETY: the caller's promise.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "no fork");
    if pid == 0 {
        let status = body();
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(status) };
    }
    pid
}

/// Waits for a child's end; its raw status.
fn wait(pid: pid_t) -> c_int {
    let mut status = 0;
    // SAFETY: our child; the call fills the status.
    while unsafe { libc::waitpid(pid, &mut status, 0) } != pid {
        let error = std::io::Error::last_os_error();
        assert_eq!(error.kind(), std::io::ErrorKind::Interrupted, "{error}");
    }
    status
}

fn count(slot: Slot<'_>) {
    (0..ADDS).for_each(|_| slot.inc());
}

/// Six children and this process on one mapping.
fn on_shared_memory() -> u64 {
    let segment = Segment::shared().expect("memory");
    let slot = segment.slot::<u64>(0).expect("a word");
    let child = || {
        count(slot);
        0
    };
    // SAFETY: counting takes no lock and allocates nothing.
    let children: Vec<_> = (0..PROCESSES).map(|_| unsafe { fork(child) }).collect();
    count(slot);
    for pid in children {
        assert_eq!(wait(pid), 0);
    }
    assert_eq!(slot.sum(), (PROCESSES + 1) * ADDS);
    slot.sum()
}

/// Six children that map a file, each anew and at its own address, and this process.
fn on_a_file(mechanism: Mechanism) -> u64 {
    let cpus = choice().cpus;
    let fd: OwnedFd = rustix::fs::memfd_create(c"segment", MemfdFlags::CLOEXEC).expect("a memfd");
    let bytes = Segment::bytes(cpus).expect("few CPUs");
    rustix::fs::ftruncate(&fd, bytes as u64).expect("room");
    let map = || Segment::of_fd(fd.as_fd(), 0, cpus, mechanism).expect("a mapping");
    let child = || {
        count(map().slot(0).expect("a word"));
        0
    };
    // SAFETY: mapping makes system calls, and allocates nothing unless it fails.
    let children: Vec<_> = (0..PROCESSES).map(|_| unsafe { fork(child) }).collect();
    let segment = map();
    let slot = segment.slot::<u64>(0).expect("a word");
    count(slot);
    for pid in children {
        assert_eq!(wait(pid), 0);
    }
    assert_eq!(slot.sum(), (PROCESSES + 1) * ADDS);
    slot.sum()
}

/// What a child that will be killed has begun and ended, in memory that it shares.
#[derive(Debug)]
struct Progress<'a> {
    begun: &'a AtomicU64,
    ended: &'a AtomicU64,
}

impl Progress<'_> {
    /// Counts until it is killed.
    fn count_for_ever(&self, slot: Slot<'_>) -> ! {
        loop {
            self.begun.fetch_add(1, SeqCst);
            slot.inc();
            self.ended.fetch_add(1, SeqCst);
        }
    }
}

/// Children are killed one after the other while another process and this one count on.
fn with_kills() -> u64 {
    /// What the others count: far from what the killed can reach.
    const DIGIT: u64 = 1 << 28;
    let segment = Segment::shared().expect("memory");
    let slot = segment.slot::<u64>(0).expect("a word");
    // Three words of the shared memory, which nobody counts on by sections.
    let plain = |index| crate::common::lanes::word(&segment, Lane::Shared, index);
    let progress = Progress {
        begun: plain(1),
        ended: plain(2),
    };
    let (stop, others) = (plain(3), plain(4));
    let neighbour = || {
        let mut counted = 0;
        while stop.load(Relaxed) == 0 {
            slot.add(DIGIT);
            counted += 1;
        }
        others.fetch_add(counted, SeqCst);
        0
    };
    // SAFETY: counts, and nothing else.
    let neighbour = unsafe { fork(neighbour) };
    let mut random = Random(SEED);
    for _ in 0..KILLS {
        let target = progress.ended.load(SeqCst) + 1 + random.below(2_000);
        // SAFETY: as above.
        let child = unsafe { fork(|| progress.count_for_ever(slot)) };
        while progress.ended.load(SeqCst) < target {
            slot.add(DIGIT);
            others.fetch_add(1, SeqCst);
        }
        // SAFETY: our child, not waited for yet.
        assert_eq!(unsafe { libc::kill(child, libc::SIGKILL) }, 0);
        assert_eq!(libc::WTERMSIG(wait(child)), libc::SIGKILL);
    }
    stop.store(1, SeqCst);
    assert_eq!(wait(neighbour), 0);
    let (begun, ended) = (progress.begun.load(SeqCst), progress.ended.load(SeqCst));
    let (by_killed, by_others) = (slot.sum() % DIGIT, slot.sum() / DIGIT);
    println!("seed {SEED:#x}: {ended} <= {by_killed} <= {begun}; others {by_others}");
    assert_eq!(by_others, others.load(SeqCst));
    assert!((ended..=begun).contains(&by_killed));
    assert!(
        begun - ended <= KILLS,
        "a killed child has one operation under way at most"
    );
    slot.sum()
}

#[test]
fn six_processes_on_shared_memory() {
    on_shared_memory();
}

#[test]
fn six_processes_on_a_file() {
    on_a_file(choice().mechanism);
    on_a_file(Mechanism::LockedLanes);
}

#[test]
fn killed_children_lose_nothing_of_others() {
    with_kills();
}

#[test]
fn with_own_registration() {
    child::run_chosen(
        "forks::with_own_registration",
        Setting::OwnRegistration,
        || on_shared_memory() + on_a_file(Mechanism::Rseq) + with_kills(),
    );
}

#[test]
fn where_the_kernel_refuses() {
    child::run_chosen(
        "forks::where_the_kernel_refuses",
        Setting::Refused(EPERM),
        || on_shared_memory() + on_a_file(Mechanism::LockedLanes) + on_a_file(Mechanism::Rseq),
    );
}

/// The first use of all in a forked child, whose parent has chosen nothing.
#[test]
fn first_use_in_a_forked_child() {
    for setting in [
        Setting::AsIs,
        Setting::OwnRegistration,
        Setting::Refused(EPERM),
    ] {
        child::run("forks::first_use_in_a_forked_child", setting, || {
            let body = || {
                let segment = Segment::private().expect("memory");
                let slot = segment.slot::<u64>(0).expect("a word");
                count(slot);
                c_int::from(slot.sum() != ADDS || choice() != setting.choose())
            };
            // SAFETY: this process has no other thread but the test harness, which waits.
            let pid = unsafe { fork(body) };
            assert_eq!(wait(pid), 0);
            setting.choose();
            ADDS
        });
    }
}

/// The same count without sections or locks: processes lose each other's.
#[test]
fn a_plain_count_is_found() {
    let segment = Segment::shared().expect("memory");
    let word = crate::common::lanes::word(&segment, Lane::Cpu(0), 0);
    let body = || {
        for _ in 0..ADDS {
            word.store(word.load(Relaxed) + 1, Relaxed);
        }
        0
    };
    let wrong = || {
        word.store(0, SeqCst);
        // SAFETY: loads and stores only.
        let children: Vec<_> = (0..PROCESSES).map(|_| unsafe { fork(body) }).collect();
        children
            .into_iter()
            .for_each(|pid| assert_eq!(wait(pid), 0));
        word.load(SeqCst) != PROCESSES * ADDS
    };
    assert!((0..20).any(|_| wrong()));
}

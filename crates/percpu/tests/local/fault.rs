//! Handlers of faults count: a trap (`int3`) and a store to a page that may not be written, raised
//! between operations, in the thread, in a handler, and in each other's handlers.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::SeqCst};

use countersink_percpu::local::{Atomic, Context, Local, PerCpu, TriValue};
use libc::{PROT_NONE, PROT_READ, PROT_WRITE, SIGSEGV, SIGTRAP, SIGUSR1, c_int, c_void};

use crate::signals::{exclusive, install, raise};
use crate::ways::Way;

/// What each handler adds: digits, as many rounds as there are below 2^20.
const AMOUNTS: [(c_int, i64); 3] = [(SIGUSR1, 1 << 16), (SIGTRAP, 1 << 32), (SIGSEGV, 1 << 48)];
const ROUNDS: u64 = 2000;

static COUNTER: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());
/// A page that no one may touch until the handler of SIGSEGV allows it.
static PAGE: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static RUNS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
const PAGE_SIZE: usize = 4096;

fn protect(protection: c_int) {
    // SAFETY: a page of ours.
    let result = unsafe { libc::mprotect(PAGE.load(SeqCst), PAGE_SIZE, protection) };
    assert_eq!(result, 0);
}

/// The store runs again after the handler, and succeeds.
fn touch() {
    protect(PROT_NONE);
    // SAFETY: a page of ours; the handler makes it writable.
    unsafe { PAGE.load(SeqCst).cast::<u64>().write_volatile(1) };
}

fn trap() {
    // SAFETY: the handler returns behind it.
    unsafe { core::arch::asm!("int3") };
}

/// Counts, and causes the next fault: SIGUSR1, SIGTRAP and SIGSEGV are handled within each other.
fn handler<W: Way>(signal: c_int) {
    // SAFETY: a counter of this thread that lives while signals come.
    let counter = unsafe { &*COUNTER.load(SeqCst).cast::<W>() };
    let which = AMOUNTS.iter().position(|(other, _)| *other == signal);
    let which = which.expect("one of them");
    RUNS[which].fetch_add(1, SeqCst);
    counter.add(AMOUNTS[which].1);
    match signal {
        SIGUSR1 => trap(),
        SIGTRAP => touch(),
        _ => protect(PROT_READ | PROT_WRITE),
    }
    counter.add(AMOUNTS[which].1);
}

fn counts_in_fault_handlers<W: Way>() {
    assert!(W::CONTEXTS.contains(&Context::FaultHandler));
    let _exclusive = exclusive();
    let counter = W::make();
    COUNTER.store((&raw const counter).cast_mut().cast(), SeqCst);
    // SAFETY: a new mapping.
    let page = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        libc::mmap(core::ptr::null_mut(), PAGE_SIZE, PROT_NONE, flags, -1, 0)
    };
    assert_ne!(page, libc::MAP_FAILED);
    PAGE.store(page, SeqCst);
    // SAFETY: an action of the C library's or the runtime's, put back as it was.
    let before = AMOUNTS.map(|(signal, _)| unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        libc::sigaction(signal, core::ptr::null(), &mut action);
        action
    });
    for (signal, _) in AMOUNTS {
        install(signal, W::ENTRY, handler::<W>);
    }
    let mut expected = 0;
    for _ in 0..ROUNDS {
        counter.inc();
        touch();
        counter.add(2);
        trap();
        counter.add_return(3);
        raise(SIGUSR1);
        expected += 6;
    }
    for ((signal, _), action) in AMOUNTS.iter().zip(before) {
        // SAFETY: as above.
        unsafe { libc::sigaction(*signal, &action, core::ptr::null_mut()) };
    }
    // SAFETY: mapped above, of no use any more.
    unsafe { libc::munmap(page, PAGE_SIZE) };
    let runs = RUNS.each_ref().map(|runs| runs.swap(0, SeqCst));
    assert_eq!(runs, [ROUNDS, 2 * ROUNDS, 3 * ROUNDS]);
    let amounts = AMOUNTS.iter().map(|(_, amount)| amount);
    let added = runs
        .iter()
        .zip(amounts)
        .map(|(runs, n)| 2 * *runs as i64 * n);
    expected += added.sum::<i64>();
    println!(
        "{}: {runs:?} runs of the handlers of SIGUSR1, int3, SIGSEGV",
        W::NAME
    );
    assert_eq!(counter.read(), expected, "{}", W::NAME);
}

#[test]
fn ways_for_fault_handlers_count_in_them() {
    counts_in_fault_handlers::<Atomic>();
    counts_in_fault_handlers::<TriValue>();
    counts_in_fault_handlers::<Local>();
    counts_in_fault_handlers::<PerCpu<'static>>();
}

//! A cycle counter that may not be read.
#![allow(unsafe_code)]

use countersink::clock::{self, Source};

use crate::child::{Act, Child, tell};
use crate::work::count_and_check;

pub(crate) const ACTS: &[Act] = &[("clock::forbidden", forbidden)];

/// Reading the counter kills from here on; and so do the C library's clocks, which read it themselves.
fn forbidden() {
    // SAFETY: no preconditions.
    let result = unsafe { libc::prctl(libc::PR_SET_TSC, libc::PR_TSC_SIGSEGV) };
    assert_eq!(result, 0);
    for source in [Source::Cycles, Source::CyclesOfEachCpu] {
        assert_eq!(clock::request(source), Err(Source::Monotonic));
    }
    assert_eq!(clock::source(), Source::Monotonic);
    let [first, second] = [(); 2].map(|()| clock::now().ticks);
    assert!(0 < first && first <= second);
    // Threads inherit it.
    count_and_check();
    tell("clock", "monotonic");
}

#[test]
fn the_cycle_counter_may_not_be_read() {
    if cfg!(not(target_arch = "x86_64")) {
        println!("NOT TESTED: there is nothing of the kind on this architecture");
        return;
    }
    let outcome = Child::new("clock::forbidden").run();
    assert_eq!(
        (outcome.value("place"), outcome.value("clock")),
        ("memfd", "monotonic")
    );
}

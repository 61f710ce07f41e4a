//! Counters with the known mistakes, each of which the storm must find.
#![allow(unsafe_code)]

use core::arch::asm;
use std::sync::atomic::Ordering::Relaxed;

use countersink_percpu::{Lane, Segment};

use crate::common::{cpus, lanes, libc_rseq};
use crate::counter::Counter;
use crate::exact::SIGNALS;
use crate::storm::{Plan, storm};

/// How often a storm may miss a mistake before the test fails.
const TRIES: usize = 40;

/// The word of the lane of CPU 0, and where the C library has a thread's area.
#[derive(Clone, Copy, Debug)]
struct Word {
    address: *mut u64,
    area: isize,
}

// SAFETY: an address; how the word is used is what is tested.
unsafe impl Sync for Word {}

/// One attempt, with its own descriptor: from 2 to 3, abort at 4. `before` runs before the section
/// and `behind` behind it; both may use `t`, `s` and `v` (scratch).
macro_rules! attempt {
    ($word:expr, $n:expr, [$($before:expr),*], [$($section:expr),*], [$($behind:expr),*]) => {{
        let done: u64;
        asm!(
            r#".pushsection __rseq_cs, "aw", @progbits"#,
            ".balign 32",
            "9:",
            ".long 0, 0",
            ".quad 2f, 3f - 2f, 4f",
            ".popsection",
            $($before,)*
            "6:",
            "xor {done:e}, {done:e}",
            "2:",
            "lea {t}, [rip + 9b]",
            "mov qword ptr fs:[{area} + 8], {t}",
            "mov {t:e}, dword ptr fs:[{area} + 4]",
            "shl {t}, 16",
            $($section,)*
            "3:",
            $($behind,)*
            "mov {done:e}, 1",
            "# scratch: {s} {v}",
                        r#".pushsection .text.unlikely.countersink_mutants, "ax", @progbits"#,
            ".byte 0x0f, 0xb9, 0x3d",
            ".long 0x53053053",
            "4:",
            "jmp 6b",
            ".popsection",
            word = in(reg) $word.address,
            area = in(reg) $word.area,
            n = in(reg) $n,
            t = out(reg) _,
            s = out(reg) _,
            v = out(reg) _,
            done = out(reg) done,
            options(nostack),
        );
        done
    }};
}

/// How a mutant counts; each is a function of its own, so that the mistake is the only difference.
type Count = unsafe fn(Word, u64);

/// The right way, in the same clothes: it must pass, or the others prove nothing.
unsafe fn right(word: Word, n: u64) {
    // SAFETY: as Mutant's count().
    let done = unsafe { attempt!(word, n, [], ["add qword ptr [{word} + {t}], {n}"], []) };
    assert_eq!(done, 1);
}

/// The load comes before the section, and is not repeated when the section is.
unsafe fn load_outside(word: Word, n: u64) {
    // SAFETY: as Mutant's count().
    unsafe {
        attempt!(
            word,
            n,
            [
                "mov {t:e}, dword ptr fs:[{area} + 4]",
                "shl {t}, 16",
                "mov {v}, qword ptr [{word} + {t}]"
            ],
            ["lea {s}, [{v} + {n}]", "mov qword ptr [{word} + {t}], {s}"],
            []
        );
    }
}

/// The commit comes after the section's end.
unsafe fn commit_outside(word: Word, n: u64) {
    // SAFETY: as Mutant's count().
    unsafe {
        attempt!(
            word,
            n,
            [],
            ["mov {s}, qword ptr [{word} + {t}]", "add {s}, {n}"],
            ["mov qword ptr [{word} + {t}], {s}"]
        );
    }
}

/// The CPU is found out before the section, which only covers load and store: after a migration it
/// runs on the lane of another CPU.
unsafe fn cpu_outside(word: Word, n: u64) {
    // SAFETY: as Mutant's count().
    unsafe {
        attempt!(
            word,
            n,
            ["mov {v:e}, dword ptr fs:[{area} + 4]", "shl {v}, 16"],
            [
                "mov {s}, qword ptr [{word} + {v}]",
                "add {s}, {n}",
                "mov qword ptr [{word} + {v}], {s}"
            ],
            []
        );
    }
}

/// No section: load, add and store.
unsafe fn no_section(word: Word, n: u64) {
    // SAFETY: as Mutant's count().
    unsafe {
        asm!(
            "mov {t:e}, dword ptr fs:[{area} + 4]",
            "shl {t}, 16",
            "mov {s}, qword ptr [{word} + {t}]",
            "add {s}, {n}",
            "mov qword ptr [{word} + {t}], {s}",
            word = in(reg) word.address,
            area = in(reg) word.area,
            n = in(reg) n,
            t = out(reg) _,
            s = out(reg) _,
            options(nostack),
        );
    }
}

/// The commit is there, and an abort repeats what had been committed: counts twice.
unsafe fn restart_after_commit(word: Word, n: u64) {
    // SAFETY: as Mutant's count().
    unsafe {
        attempt!(
            word,
            n,
            [],
            [
                "add qword ptr [{word} + {t}], {n}",
                "nop",
                "nop",
                "nop",
                "nop"
            ],
            []
        );
    }
}

struct Mutant<'a> {
    name: &'static str,
    word: Word,
    count: Count,
    segment: &'a Segment,
}

impl Counter for Mutant<'_> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn count(&self, n: u64) -> u64 {
        // SAFETY: the word and the area are real, every thread is registered by the C library, and
        // nobody else uses the word; the wrong totals are what is wanted.
        unsafe { (self.count)(self.word, n) };
        n
    }

    fn total(&self) -> u64 {
        self.segment.slot(0).map_or(0, |slot| slot.sum())
    }
}

/// In how many storms of `TRIES` the total was wrong; stops at the first.
fn is_found(name: &'static str, count: Count, plan: &Plan) -> bool {
    let segment = Segment::private().expect("memory");
    let mutant = Mutant {
        name,
        word: Word {
            address: lanes::word(&segment, Lane::Cpu(0), 0).as_ptr(),
            area: libc_rseq::offset(),
        },
        count,
        segment: &segment,
    };
    (0..TRIES).any(|_| !storm(&mutant, plan).is_exact())
}

fn possible() -> bool {
    let possible = libc_rseq::registers();
    if !possible {
        println!("mutants need the C library's registration");
    }
    possible
}

#[test]
fn the_right_way_passes() {
    if possible() {
        let once = storm_of_right(&SIGNALS);
        assert!(once, "the right way must be exact");
    }
}

fn storm_of_right(plan: &Plan) -> bool {
    !is_found(
        "right",
        right,
        &Plan {
            operations: plan.operations / 4,
            signals: plan.signals / 4,
            ..*plan
        },
    )
}

#[test]
fn a_load_outside_is_found() {
    assert!(!possible() || is_found("load outside", load_outside, &SIGNALS));
}

#[test]
fn a_commit_outside_is_found() {
    assert!(!possible() || is_found("commit outside", commit_outside, &SIGNALS));
}

#[test]
fn no_section_is_found() {
    assert!(!possible() || is_found("no section", no_section, &SIGNALS));
}

#[test]
fn a_restart_after_the_commit_is_found() {
    assert!(!possible() || is_found("restart after commit", restart_after_commit, &SIGNALS));
}

/// Only a second CPU makes this one wrong.
#[test]
fn a_cpu_found_outside_is_found() {
    let plan = Plan {
        workers_per_cpu: 2,
        operations: 2_000_000,
        moves: 2_000,
        ..Plan::default()
    };
    let alone = cpus::allowed().len() < 2;
    assert!(alone || !possible() || is_found("CPU outside", cpu_outside, &plan));
}

/// A locked addition from elsewhere on a lane that sections write: what the shared lane is for.
#[test]
fn a_locked_add_on_another_cpus_lane_is_found() {
    struct Elsewhere<'a>(&'a Segment);
    impl Counter for Elsewhere<'_> {
        fn name(&self) -> &'static str {
            "locked add elsewhere"
        }
        fn count(&self, n: u64) -> u64 {
            let slot = self.0.slot::<u64>(0).expect("a word");
            slot.add(n);
            // Whatever CPU this is, it is another than one of these.
            for cpu in 0..self.0.cpus() {
                lanes::word(self.0, Lane::Cpu(cpu), 0).fetch_add(n, Relaxed);
            }
            n * (1 + u64::from(self.0.cpus()))
        }
        fn total(&self) -> u64 {
            self.0.slot(0).map_or(0, |slot| slot.sum())
        }
    }
    if cpus::allowed().len() < 2 || !possible() {
        return;
    }
    let segment = Segment::private().expect("memory");
    let counter = Elsewhere(&segment);
    let plan = Plan {
        workers_per_cpu: 2,
        operations: 5_000_000,
        ..Plan::default()
    };
    assert!((0..TRIES).any(|_| !storm(&counter, &plan).is_exact()));
}

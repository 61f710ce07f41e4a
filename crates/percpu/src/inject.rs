//! Disturbs sections from the inside, for tests: built with `--cfg countersink_inject` only.
//!
//! Every section has numbered points. An armed point delays, and traps (`int3`) each time its count
//! of passes has run out. The trap's handler, which the test installs, arms the point anew and does
//! what the test wants done at that place: nothing, yield, sleep, raise a signal. Like any signal,
//! the trap aborts the section.
#![allow(unsafe_code)]

use core::arch::global_asm;
use core::sync::atomic::AtomicI32;
use core::sync::atomic::Ordering::Relaxed;

/// The points of a section are numbered from 1; no section has this many.
pub const POINTS: usize = 8;

// For each point, whether it is armed, and how many passes are left before it traps. Hidden, as the
// sections' own data is: a shared library that contains sections has a table of its own.
global_asm!(
    r#".pushsection .bss.countersink_inject, "aw", @nobits"#,
    ".balign 8",
    ".globl countersink_inject_points",
    ".hidden countersink_inject_points",
    "countersink_inject_points:",
    ".zero {bytes}",
    ".popsection",
    bytes = const size_of::<Table>(),
);

type Table = [[AtomicI32; 2]; POINTS];

unsafe extern "C" {
    /// The counts are shared by all threads and changed without a lock, so they are not exact, which
    /// no test needs.
    #[link_name = "countersink_inject_points"]
    safe static TABLE: Table;
}

/// Makes a point delay on every pass, and trap after `passes` more.
pub fn arm(point: usize, passes: i32) {
    if let Some([armed, left]) = TABLE.get(point) {
        left.store(passes, Relaxed);
        armed.store(1, Relaxed);
    }
}

/// Makes a point do nothing.
pub fn disarm(point: usize) {
    if let Some([armed, _]) = TABLE.get(point) {
        armed.store(0, Relaxed);
    }
}

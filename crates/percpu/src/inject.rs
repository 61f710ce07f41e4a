//! Disturbs sections from the inside, for tests: built with `--cfg countersink_inject` only.
//!
//! Every section has numbered points. An armed point delays, and traps (`int3`) each time its count
//! of passes has run out. The trap's handler, which the test installs, arms the point anew and does
//! what the test wants done at that place: nothing, yield, sleep, raise a signal. Like any signal,
//! the trap aborts the section.
#![allow(unsafe_code)]

use core::sync::atomic::AtomicI32;
use core::sync::atomic::Ordering::Relaxed;

/// The points of a section are numbered from 1; no section has this many.
pub const POINTS: usize = 8;

/// For each point, whether it is armed, and how many passes are left before it traps.
///
/// The assembly knows the name and the layout. The counts are shared by all threads and changed
/// without a lock, so they are not exact, which no test needs.
#[unsafe(export_name = "countersink_inject_points")]
static TABLE: [[AtomicI32; 2]; POINTS] = [const { [const { AtomicI32::new(0) }; 2] }; POINTS];

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

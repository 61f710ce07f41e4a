//! When there is no memory at all: words that the program has brought along.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use countersink_percpu::{STRIDE, SegmentRef, Slots, WORDS, choice};

use crate::kind::Kind;
use crate::values;

/// Lanes for one CPU; threads on others count on the shared lane. Not in memory until it is touched.
const LANES: usize = 3;
/// How many bytes it takes to begin at a multiple of 64 in there.
const BYTES: usize = LANES * STRIDE + 64;

#[repr(transparent)]
struct Memory(core::cell::UnsafeCell<[u8; BYTES]>);

// SAFETY: used as a segment only.
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory(core::cell::UnsafeCell::new([0; BYTES]));

/// Words for a metric, and whether they are its own. When all are given away, metrics share the last
/// ones, and what they say is void.
pub(crate) fn words(kind: Kind, grouping: u32) -> (Option<Slots<'static>>, bool) {
    static USED: AtomicUsize = AtomicUsize::new(0);
    let count = kind.words(grouping).min(WORDS);
    let aligned = count.next_multiple_of(8);
    let own = USED.fetch_update(Relaxed, Relaxed, |used| {
        (used + aligned <= WORDS).then_some(used + aligned)
    });
    let start = MEMORY.0.get().cast::<u8>();
    let start = start.wrapping_add(start.align_offset(64));
    let first = own.unwrap_or(WORDS - count) & !1;
    let words = NonNull::new(start).and_then(|start| {
        // SAFETY: three lanes of static memory, which nobody uses otherwise.
        unsafe { SegmentRef::new(start, 1, choice().mechanism) }.slots(first, count)
    });
    if let Some(words) = &words {
        values::begin(words, kind, false);
    }
    (words, own.is_ok())
}

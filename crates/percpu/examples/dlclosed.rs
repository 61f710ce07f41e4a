//! A library that counts, for the test that closes it again: `tests/pin.rs`.
#![allow(unsafe_code)]

use std::sync::OnceLock;

use countersink_percpu::Segment;

/// Counts 1 so many times; returns all that was counted, or 0 for want of memory.
#[unsafe(no_mangle)]
pub extern "C" fn countersink_dlclosed_count(times: u64) -> u64 {
    static SEGMENT: OnceLock<Option<Segment>> = OnceLock::new();
    let segment = SEGMENT.get_or_init(|| Segment::private().ok()).as_ref();
    segment
        .and_then(|segment| segment.slot::<u64>(0))
        .map_or(0, |slot| {
            (0..times).for_each(|_| slot.inc());
            slot.sum()
        })
}

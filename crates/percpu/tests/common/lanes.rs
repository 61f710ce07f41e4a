//! A segment's memory, by the documented layout and not by the library's functions.
#![allow(unsafe_code)]

use std::sync::atomic::AtomicU64;

use countersink_percpu::{Lane, STRIDE, Segment, WORDS};

/// A word of a lane.
pub(crate) fn word(segment: &Segment, lane: Lane, index: usize) -> &AtomicU64 {
    let place = match lane {
        Lane::Shared => 0,
        Lane::Bias => 1,
        Lane::Cpu(cpu) => 2 + cpu as usize,
    };
    assert!(place < 2 + segment.cpus() as usize && index < WORDS);
    let offset = place * STRIDE + index * size_of::<u64>();
    // SAFETY: inside the mapping, which lives as long as the segment, and aligned.
    unsafe { AtomicU64::from_ptr(segment.as_ptr().as_ptr().add(offset).cast()) }
}

/// All lanes.
pub(crate) fn all(segment: &Segment) -> impl Iterator<Item = Lane> + use<> {
    [Lane::Shared, Lane::Bias]
        .into_iter()
        .chain((0..segment.cpus()).map(Lane::Cpu))
}

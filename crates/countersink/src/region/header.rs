//! The header of a region made here.

use core::sync::atomic::Ordering::{Relaxed, Release};

use countersink_percpu::{Mechanism, choice};

use super::Region;
use crate::clock;
use crate::layout::{self, header};
use crate::os::{self, Memory};
use crate::text::Text;

/// The number of a mechanism in the header.
pub(super) fn mechanism_code(mechanism: Mechanism) -> u32 {
    match mechanism {
        Mechanism::Rseq => 1,
        Mechanism::LockedLanes => 2,
        _ => 3,
    }
}

/// The mechanism of a number.
pub(super) fn mechanism_of(code: u32) -> Option<Mechanism> {
    match code {
        1 => Some(Mechanism::Rseq),
        2 => Some(Mechanism::LockedLanes),
        3 => Some(Mechanism::ThreadLanes),
        _ => None,
    }
}

/// This library's version as the header has it.
const fn library() -> u32 {
    const fn number(text: &str) -> u32 {
        let (mut value, mut i) = (0, 0);
        while i < text.len() {
            value = value * 10 + (text.as_bytes()[i] - b'0') as u32;
            i += 1;
        }
        value
    }
    number(env!("CARGO_PKG_VERSION_MAJOR")) << 16
        | number(env!("CARGO_PKG_VERSION_MINOR")) << 8
        | number(env!("CARGO_PKG_VERSION_PATCH"))
}

impl Region {
    /// Writes the header; the flag that says so last.
    pub(super) fn write_header(&self, identity: &os::Identity) {
        let Memory {
            layout, backing, ..
        } = self.memory;
        let choice = choice();
        let put32 = |at: usize, value: u32| self.u32(at as u64).store(value, Relaxed);
        let put64 = |at: usize, value: u64| self.u64(at as u64).store(value, Relaxed);
        self.put_bytes(header::MAGIC, &layout::MAGIC);
        put32(header::VERSION, layout::VERSION);
        put32(header::BYTE_ORDER, layout::BYTE_ORDER);
        put64(header::SIZE, layout.size());
        put32(header::CPUS, layout.cpus);
        put32(header::STRIDE, layout::UNIT as u32);
        put32(header::MECHANISM, mechanism_code(self.mechanism));
        put32(header::ENTRIES, layout.entries);
        put32(header::SEGMENTS, layout.segments);
        put32(header::GROUPS, layout.groups());
        put32(header::ENTRY_SIZE, layout::ENTRY as u32);
        put64(header::INDEX_OFFSET, layout.index());
        put64(header::ENTRIES_OFFSET, layout.entries_offset());
        put64(header::SEGMENTS_OFFSET, layout.segments_offset());
        put64(header::SEGMENT_SIZE, layout.segment_size());
        put32(header::CLOCK, clock::source().code());
        put32(header::KIND, backing.code());
        let (ticks, nanoseconds) = clock::pair();
        put64(header::CLOCK_TICKS, ticks);
        put64(header::CLOCK_NANOSECONDS, nanoseconds);
        put64(header::CREATED, os::real_time());
        put32(header::PID, identity.pid);
        put32(header::UID, identity.uid);
        put64(header::START_TIME, identity.start_time);
        put64(header::PID_NAMESPACE, identity.pid_namespace);
        self.put_bytes(header::BOOT, &identity.boot);
        put32(header::LIBRARY, library());
        self.put_bytes(header::PROGRAM, &identity.program);
        let reason = Text::<{ header::REASON_LENGTH }>::of(format_args!("{choice}"));
        self.put_bytes(header::REASON, reason.padded());
        let hindrance =
            Text::<{ header::HINDRANCE_LENGTH }>::of(format_args!("{}", self.hindrance));
        self.put_bytes(header::HINDRANCE, hindrance.padded());
        // Release: whoever sees this sees all of the above.
        self.u32(header::READY as u64).store(1, Release);
    }

    /// Stores bytes in whole words; both are multiples of 8.
    pub(super) fn put_bytes(&self, at: usize, bytes: &[u8]) {
        for (number, word) in bytes.chunks_exact(8).enumerate() {
            let word = word.try_into().unwrap_or([0; 8]);
            self.u64((at + 8 * number) as u64)
                .store(u64::from_ne_bytes(word), Relaxed);
        }
    }

    /// Notes that something was reset.
    pub(crate) fn note_reset(&self) {
        self.u64(header::RESETS as u64).fetch_add(1, Relaxed);
        self.u64(header::LAST_RESET as u64)
            .store(os::real_time(), Relaxed);
    }

    /// Notes how fast the clock of spans ticks, which is found out for the first of them.
    pub(crate) fn note_clock(&self) {
        let rate = self.u64(header::TICKS_PER_SECOND as u64);
        if rate.load(Relaxed) == 0 {
            // Two threads may find slightly different rates; the first one stays.
            let _ = rate.compare_exchange(0, clock::ticks_per_second(), Relaxed, Relaxed);
        }
    }

    /// The rate that times of this region are converted with.
    pub(crate) fn ticks_per_second(&self) -> u64 {
        self.u64(header::TICKS_PER_SECOND as u64).load(Relaxed)
    }
}

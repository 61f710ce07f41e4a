//! Leaving a region that is shared with the process's parent.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use countersink_percpu::Slots;

use super::entries::{READY, Words};
use super::options::hindrance_text;
use super::{Region, existing, existing_pool};
use crate::kind::Kind;
use crate::layout::{UNIT, header};
use crate::os::{self, Memory};
use crate::values;

/// Why the region is still shared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the region cannot be left: {0}")]
pub struct UnshareError(String);

/// Gives this process a region of its own, in which all its metrics begin at 0; for a forked child
/// that is not to count into its parent's. What was counted stays in the region that is left.
///
/// Call it in the child, before it has threads. Handles stay what they are: the memory under them is
/// exchanged. The new region is a memfd, also where the old one was a file; what is private begins at 0 as
/// well, and stays private.
///
/// # Errors
/// If there is no memory for another region; everything is as before then.
pub fn unshare() -> Result<(), UnshareError> {
    if let Some(region) = existing() {
        region.unshare()?;
    }
    match existing_pool() {
        Some(pool) => pool.begin_anew(),
        None => Ok(()),
    }
}

impl Region {
    fn unshare(&self) -> Result<(), UnshareError> {
        if self.memory().backing == os::Backing::Private {
            return self.begin_anew();
        }
        let layout = self.layout();
        let entries = u64::from(self.open_entries.load(Acquire)) * UNIT;
        let segments = u64::from(self.open_segments.load(Acquire)) * layout.segment_size();
        let open = [
            (0, layout.entries_offset() + entries),
            (layout.segments_offset(), segments),
        ];
        let fill = |memory: &Memory| self.copy_to(memory, open[0].1);
        // As it is now: this may be the second time.
        let old = Memory {
            descriptor: self.descriptor.load(Relaxed),
            file: (self.file[0].load(Relaxed), self.file[1].load(Relaxed)),
            ..self.memory
        };
        match os::replace(&old, &fill, &open) {
            Ok(new) => {
                self.descriptor.store(new.descriptor, Relaxed);
                self.file[0].store(new.file.0, Relaxed);
                self.file[1].store(new.file.1, Relaxed);
                self.left.store(true, Relaxed);
                Ok(())
            }
            Err(hindrance) => Err(UnshareError(hindrance_text(hindrance))),
        }
    }

    /// Lets all metrics begin at 0 in private memory, of which a child has a copy anyway.
    fn begin_anew(&self) -> Result<(), UnshareError> {
        let layout = self.layout();
        let bytes = u64::from(self.open_segments.load(Acquire)) * layout.segment_size();
        if !os::clear_private(&self.memory, layout.segments_offset(), bytes) {
            return Err(UnshareError(hindrance_text(os::Hindrance::Limit)));
        }
        self.begin_spans();
        Ok(())
    }

    /// Makes a region with the same metrics, which have counted nothing, out of new memory.
    fn copy_to(&self, memory: &Memory, bytes: u64) -> bool {
        if !os::open_part(memory, 0, bytes) {
            return false;
        }
        let new = Region::new(*memory, self.mechanism, os::Hindrance::None);
        // From the end: an entry that another process completes meanwhile, and that is seen, must be among
        // those that the header says are handed out. Acquire keeps the loads in this order.
        for word in (0..bytes / 8).rev() {
            let offset = 8 * word;
            let value = self.u64(offset).load(Acquire);
            // Untouched pages stay untouched.
            if value != 0 {
                new.u64(offset).store(value, Relaxed);
            }
        }
        new.u64(header::RESETS as u64).store(0, Relaxed);
        new.u64(header::LAST_RESET as u64).store(0, Relaxed);
        new.begin_spans();
        new.copy_slacks(self);
        new.write_header(&os::identity());
        true
    }

    /// Begins the first generation of every span: words begin at 0, which is none.
    fn begin_spans(&self) {
        self.each_of(
            |kind| kind == Kind::Span,
            |words, _| values::begin(&words, Kind::Span, false),
        );
    }

    /// Says in a new region how much lanes may have unpublished, as the old one says it.
    fn copy_slacks(&self, old: &Region) {
        self.each_of(Kind::keeps_words, |words, held| {
            if let Some(before) = old.metric_words(held) {
                values::copy_slack(&before, &words);
            }
        });
    }

    /// Calls a function with the words of every metric of a kind.
    fn each_of(&self, is_meant: impl Fn(Kind) -> bool, call: impl Fn(Slots<'static>, Words)) {
        for number in 0..self.entries_used() {
            let Some(entry) = self.entry(number) else {
                continue;
            };
            if entry.life().state() != READY || !Kind::of(entry.kind()).is_some_and(&is_meant) {
                continue;
            }
            let held = entry.words();
            if let Some(words) = self.metric_words(held) {
                call(words, held);
            }
        }
    }

    fn metric_words(&self, held: Words) -> Option<Slots<'static>> {
        self.segment(held.segment)?
            .slots(held.first as usize, held.count as usize)
    }
}

//! What the program wanted to count and the region could not take.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::Region;
use crate::layout::header;

/// Why a metric counts privately. The numbers are those of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Name = 1,
    Labels = 2,
    TooLong = 3,
    Different = 4,
    NoEntry = 5,
    NoWords = 6,
    NoMemory = 7,
}

const FREE: u32 = 0;
const WRITING: u32 = 1;
const READY: u32 = 2;

impl Refusal {
    /// Why, as a phrase.
    pub(crate) fn text(code: u32) -> &'static str {
        match code {
            1 => "not a metric's name",
            2 => "not valid labels",
            3 => "name and labels are too long",
            4 => "defined before with another kind, unit, grouping power or sum",
            5 => "no room for another metric",
            6 => "no room for its words",
            7 => "no memory",
            _ => "for a reason that this version does not know",
        }
    }
}

impl Region {
    /// Notes a refusal: a count by reason, and the first names.
    pub(crate) fn refuse(&self, name: &str, reason: Refusal) {
        let total = header::REFUSALS + 8 * reason as usize;
        self.u64(total as u64).fetch_add(1, Relaxed);
        let mut text = [0; header::REFUSED_NAME_LENGTH];
        let length = name.floor_char_boundary(text.len());
        text[..length].copy_from_slice(&name.as_bytes()[..length]);
        for number in 0..header::REFUSED_COUNT {
            let at = header::REFUSED + header::REFUSED_SIZE * number;
            if self.note_in(at, &text, reason) {
                return;
            }
        }
    }

    /// Notes a refusal in this record, if it is free or is of this name and reason.
    fn note_in(
        &self,
        at: usize,
        name: &[u8; header::REFUSED_NAME_LENGTH],
        reason: Refusal,
    ) -> bool {
        let state = self.u32(at as u64);
        let times = self.u64((at + 8) as u64);
        if state
            .compare_exchange(FREE, WRITING, AcqRel, Acquire)
            .is_ok()
        {
            self.u32((at + 4) as u64).store(reason as u32, Relaxed);
            times.store(1, Relaxed);
            self.put_bytes(at + header::REFUSED_NAME, name);
            // Release pairs with the acquire below and with readers.
            state.store(READY, Release);
            return true;
        }
        let same = state.load(Acquire) == READY
            && self.u32((at + 4) as u64).load(Relaxed) == reason as u32
            && name.chunks_exact(8).enumerate().all(|(number, word)| {
                let held = self.u64((at + header::REFUSED_NAME + 8 * number) as u64);
                held.load(Relaxed).to_ne_bytes() == word
            });
        if same {
            times.fetch_add(1, Relaxed);
        }
        same
    }
}

//! The index: from name and labels to an entry without looking at all of them.
//!
//! A slot holds a hash and an entry's number, or 0. It only says where to look; what counts is the
//! entry. Two groups of slots can have a metric. Slots of dropped metrics become free again without
//! a trace, so a lookup looks at all of both.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use super::Region;
use super::entries::{Entry, Texts};
use super::register::Wanted;
use crate::layout::GROUP;

/// What a lookup found.
pub(super) enum Found<'a> {
    /// A ready entry of this name and labels, of which the caller is a user now.
    Joined(Entry<'a>),
    /// One that counts something else.
    Different,
    /// None, and where it may be put: the first free slot.
    Nothing(Option<u64>),
}

fn slot_value(hash: u32, entry: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(entry + 1)
}

impl Region {
    /// The offsets of all slots that can have this hash.
    fn slots(&self, hash: u32) -> impl Iterator<Item = u64> {
        let layout = self.layout();
        let mask = layout.groups() - 1;
        let second = (hash >> 16) ^ hash.wrapping_mul(0x9e37_79b1);
        let groups = [hash & mask, second & mask];
        let start = move |group: u32| layout.index() + u64::from(group) * (GROUP * 8) as u64;
        groups
            .into_iter()
            .flat_map(move |group| (0..GROUP as u64).map(move |slot| start(group) + 8 * slot))
    }

    /// Looks for an entry of this name and labels.
    pub(super) fn find(&self, wanted: &Wanted<'_>, texts: &Texts, hash: u32) -> Found<'_> {
        let mut free = None;
        for slot in self.slots(hash) {
            let held = self.u64(slot).load(Acquire);
            if held == 0 {
                free = free.or(Some(slot));
            } else if (held >> 32) as u32 == hash {
                let number = (held as u32).wrapping_sub(1);
                if let Some(found) = self.try_join(number, wanted, texts) {
                    return found;
                }
            }
        }
        if free.is_none() {
            // Some entries of full groups are in no slot.
            for number in 0..self.entries_used() {
                let same = self.entry(number).is_some_and(|entry| entry.hash() == hash);
                if same && let Some(found) = self.try_join(number, wanted, texts) {
                    return found;
                }
            }
        }
        Found::Nothing(free)
    }

    /// Joins an entry if it is of this name and labels; `None` if it is not, or not any more.
    fn try_join(&self, number: u32, wanted: &Wanted<'_>, texts: &Texts) -> Option<Found<'_>> {
        let entry = self.entry(number)?;
        // Others may join or leave meanwhile, which changes the life; not without end.
        for _ in 0..1000 {
            let life = entry.life();
            if life.state() != super::entries::READY || !entry.is_named(wanted, texts) {
                return None;
            }
            let like = entry.is_like(wanted);
            if !like && entry.life() == life {
                return Some(Found::Different);
            }
            if like && entry.join(life) {
                return Some(Found::Joined(entry));
            }
        }
        None
    }

    /// Puts an entry into a slot that was free; whether it still was.
    pub(super) fn fill_slot(&self, slot: u64, hash: u32, entry: u32) -> bool {
        self.u64(slot)
            .compare_exchange(0, slot_value(hash, entry), AcqRel, Relaxed)
            .is_ok()
    }

    /// Takes an entry out of the index.
    pub(super) fn forget(&self, hash: u32, entry: u32) {
        let value = slot_value(hash, entry);
        for slot in self.slots(hash) {
            let place = self.u64(slot);
            if place.load(Relaxed) == value {
                let _ = place.compare_exchange(value, 0, AcqRel, Relaxed);
            }
        }
    }
}

//! Making an entry.

use super::memory::{COUNTS, Memory, State};
use super::task::{Pc, Role, Scan, Task};
use super::{ENTRIES, Flaw, Index, Rules};

impl Task {
    /// Takes an entry off the free list, or the next new one.
    pub(super) fn reserve(&self, rules: &Rules, memory: &mut Memory) -> Option<Pc> {
        let next = match self.pc {
            Pc::Head => match memory.free {
                (_, 0) => Pc::Reserve,
                head => Pc::Next(head),
            },
            Pc::Next(head) => Pc::Pop(head, memory.entry(head.1 - 1).next),
            Pc::Pop(head, next) => match rules.exchange_head(head, next, memory) {
                true => Pc::Begin(head.1 - 1),
                false => Pc::Head,
            },
            Pc::Reserve => match memory.used {
                used if usize::from(used) == ENTRIES => Pc::Refused,
                used => Pc::ReserveExchange(used),
            },
            Pc::ReserveExchange(used) if memory.used == used => {
                memory.used += 1;
                Pc::Begin(used)
            }
            Pc::ReserveExchange(_) => Pc::Reserve,
            _ => return None,
        };
        Some(next)
    }

    /// Writes an entry, with its words as if they held nothing, and makes it ready.
    pub(super) fn write(&mut self, rules: &Rules, memory: &mut Memory) -> Option<Pc> {
        let next = match self.pc {
            Pc::TakeBias(entry) => Pc::TakeLane {
                entry,
                bias: memory.entry(entry).bias,
            },
            Pc::TakeLane { entry, bias } => Pc::TakeExchange {
                entry,
                bias,
                lane: memory.entry(entry).lane,
            },
            Pc::TakeExchange { entry, bias, lane } => self.take(rules, entry, bias, lane, memory),
            Pc::Begin(entry) => {
                let life = &mut memory.entry(entry).life;
                let used = life.state != State::Never;
                if !used || rules.flaw != Some(Flaw::SameGeneration) {
                    life.generation += 1;
                }
                (life.state, life.users) = (State::Writing, 0);
                match used && rules.flaw != Some(Flaw::KeepsCounts) {
                    true => Pc::TakeBias(entry),
                    false => rules.written(entry),
                }
            }
            Pc::Write(entry) => {
                memory.entry(entry).name = self.name();
                match rules.flaw == Some(Flaw::ReadyFirst) {
                    true => self.indexed(entry, rules),
                    false => Pc::Publish(entry),
                }
            }
            Pc::Publish(entry) => {
                let life = &mut memory.entry(entry).life;
                (life.state, life.users) = (State::Ready, 1);
                match rules.flaw == Some(Flaw::ReadyFirst) {
                    true => Pc::Write(entry),
                    false => self.indexed(entry, rules),
                }
            }
            _ => return None,
        };
        Some(next)
    }

    /// Puts a ready entry into the index, and counts on it.
    pub(super) fn use_entry(&self, rules: &Rules, memory: &mut Memory) -> Option<Pc> {
        let next = match self.pc {
            Pc::Fill { entry, slot } => {
                let slot = &mut memory.slots[usize::from(slot)];
                if *slot == 0 {
                    *slot = entry + 1;
                    return Some(Pc::Count(entry));
                }
                // Somebody else was faster, perhaps with the same name.
                Pc::Slot(Scan {
                    mine: entry + 1,
                    ..Scan::default()
                })
            }
            Pc::Insert { entry, at } => {
                let slot = &mut memory.slots[usize::from(at)];
                let inserted = *slot == 0;
                if inserted {
                    *slot = entry + 1;
                }
                match inserted || at + 1 == rules.slots {
                    false => Pc::Insert { entry, at: at + 1 },
                    // In no slot, it comes after those that are.
                    true => Pc::Slot(Scan {
                        mine: entry + 1,
                        place: if inserted { at } else { rules.slots },
                        ..Scan::default()
                    }),
                }
            }
            Pc::Count(entry) => {
                let n = COUNTS[usize::from(self.name())];
                memory.entry(entry).lane += n;
                memory.counted[usize::from(self.name())] += n;
                match self.role {
                    Role::User { drops: true, .. } => Pc::Drop { entry, then: 0 },
                    _ => Pc::Kept(entry),
                }
            }
            _ => return None,
        };
        Some(next)
    }

    /// A new entry that is ready goes into the index.
    fn indexed(&mut self, entry: u8, rules: &Rules) -> Pc {
        let room = core::mem::take(&mut self.room);
        match (rules.index, room.checked_sub(1)) {
            (Index::LeavesHigherEntry | Index::LeavesLaterSlot, _) => Pc::Insert { entry, at: 0 },
            (Index::FillsSlotFound, Some(slot)) => Pc::Fill { entry, slot },
            (Index::FillsSlotFound, None) => Pc::Count(entry),
        }
    }

    fn take(&self, rules: &Rules, entry: u8, bias: i8, lane: i8, memory: &mut Memory) -> Pc {
        let now = &mut memory.entry(entry).bias;
        if *now != bias {
            return Pc::TakeBias(entry);
        }
        *now = -lane;
        let Some(joined) = self.resets() else {
            return rules.written(entry);
        };
        let amount = bias + lane;
        memory.reset[usize::from(self.name())] += amount;
        // What is left of a dropped metric is nobody's; a reset may have it.
        let held = memory.entry(entry);
        if held.life.state != State::Ready {
            let name = usize::from(held.name);
            memory.retired[name] -= amount;
        }
        match joined {
            true => Pc::Drop { entry, then: 0 },
            false => Pc::Gone,
        }
    }
}

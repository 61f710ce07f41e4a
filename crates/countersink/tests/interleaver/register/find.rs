//! Looking for an entry.

use super::memory::{Life, Memory, State};
use super::task::{Pc, Scan, Task};
use super::{Flaw, Index, Rules};

impl Task {
    /// Finds an entry and joins its users.
    pub(super) fn look_up(&mut self, rules: &Rules, memory: &mut Memory) -> Option<Pc> {
        let next = match self.pc {
            Pc::Slot(mut scan) => {
                let found = memory.slots[usize::from(scan.at)];
                if found == 0 && scan.room == 0 {
                    scan.room = scan.at + 1;
                }
                let other = scan.mine == 0
                    || match rules.index {
                        Index::LeavesHigherEntry => found < scan.mine,
                        Index::LeavesLaterSlot => scan.at < scan.place,
                        Index::FillsSlotFound => true,
                    };
                match found {
                    0 => self.after(scan, rules),
                    _ if !other || found == scan.mine => self.after(scan, rules),
                    _ if rules.flaw == Some(Flaw::JoinsBlindly) => {
                        Pc::Name(scan, found - 1, Life::default())
                    }
                    _ => Pc::Look(scan, found - 1),
                }
            }
            Pc::Used(mut scan) => {
                scan.used = memory.used;
                self.after(scan, rules)
            }
            Pc::Look(scan, entry) => match memory.entry(entry).life {
                life if life.state == State::Ready => Pc::Name(scan, entry, life),
                _ => self.after(scan, rules),
            },
            Pc::Name(scan, entry, life) => match memory.entry(entry).name == self.name() {
                true if self.resets() == Some(false) => Pc::TakeBias(entry),
                true => Pc::Join(scan, entry, life),
                false => self.after(scan, rules),
            },
            Pc::Join(scan, entry, life) => {
                let now = &mut memory.entry(entry).life;
                if rules.flaw != Some(Flaw::JoinsBlindly) && *now != life {
                    return Some(Pc::Look(scan, entry));
                }
                now.users += 1;
                match scan.mine.checked_sub(1) {
                    _ if self.resets().is_some() => Pc::TakeBias(entry),
                    None => Pc::Count(entry),
                    Some(mine) => Pc::Drop {
                        entry: mine,
                        then: entry + 1,
                    },
                }
            }
            _ => return None,
        };
        Some(next)
    }

    /// Goes on to the next place of a scan, or ends it.
    fn after(&mut self, mut scan: Scan, rules: &Rules) -> Pc {
        if self.resets().is_some() {
            return Pc::Void;
        }
        scan.at += 1;
        let slots = rules.slots;
        let fills = rules.index == Index::FillsSlotFound;
        // Where no slot is empty, some entries are in none, and all are looked at.
        let all = scan.room == 0 && (scan.mine == 0 || fills);
        if scan.at < slots {
            Pc::Slot(scan)
        } else if all && scan.at == slots {
            Pc::Used(scan)
        } else if all && scan.at - slots <= scan.used {
            Pc::Look(scan, scan.at - slots - 1)
        } else if scan.mine == 0 {
            self.room = if fills { scan.room } else { 0 };
            Pc::Head
        } else if fills && scan.room > 0 {
            Pc::Fill {
                entry: scan.mine - 1,
                slot: scan.room - 1,
            }
        } else {
            Pc::Count(scan.mine - 1)
        }
    }
}

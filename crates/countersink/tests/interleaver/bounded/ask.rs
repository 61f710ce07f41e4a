//! Setting, summing up, and repairing.

use super::{Flaw, Memory, Rules};
use crate::SHARED;
use crate::add::Pair;

/// Makes the sum another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Setter {
    value: i8,
    state: Setting,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Setting {
    /// Loads the shared lane's pair.
    Hold,
    /// Adds up the other lanes.
    Scan {
        held: Pair,
        lane: usize,
        sum: i8,
    },
    Before {
        held: Pair,
        by: i8,
    },
    Exchange {
        held: Pair,
        by: i8,
    },
    TakeBack {
        held: Pair,
        by: i8,
    },
    Behind {
        by: i8,
    },
}

impl Setter {
    pub(super) fn new(value: i8) -> Self {
        Setter {
            value,
            state: Setting::Hold,
        }
    }

    /// Whether it has ended.
    pub(super) fn step(&mut self, rules: &Rules, memory: &mut Memory) -> bool {
        let scan = |held: Pair| Setting::Scan {
            held,
            lane: 0,
            sum: held[0],
        };
        self.state = match self.state {
            Setting::Hold => {
                memory.begun += 1;
                scan(memory.lanes[SHARED])
            }
            Setting::Scan { held, lane, sum } => {
                let sum = sum + memory.lanes[lane][0];
                match lane + 1 {
                    SHARED => Setting::Before {
                        held,
                        by: self.value - sum,
                    },
                    lane => Setting::Scan { held, lane, sum },
                }
            }
            Setting::Before { held, by } => {
                *memory.word_mut(by > 0) += by;
                Setting::Exchange { held, by }
            }
            Setting::Exchange { held, by } => {
                let found = memory.lanes[SHARED];
                if found == held || rules.flaw == Some(Flaw::SetsAnyway) {
                    memory.lanes[SHARED] = held.map(|word| word + by);
                    memory.commit(by);
                    Setting::Behind { by }
                } else {
                    Setting::TakeBack { held: found, by }
                }
            }
            Setting::TakeBack { held, by } => {
                *memory.word_mut(by > 0) -= by;
                scan(held)
            }
            Setting::Behind { by } => {
                *memory.word_mut(by <= 0) += by;
                memory.ended += 1;
                return true;
            }
        };
        false
    }
}

/// Reads the sum, as `sum_within` does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Summer {
    state: Summing,
    /// What the estimates before and after allow, and the result.
    result: Option<(Pair, i8)>,
    reads: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Summing {
    First,
    Scan { before: Pair, lane: usize, sum: i8 },
    After { before: Pair, sum: i8 },
}

/// How often a sum is taken before it is brought to what is allowed.
const MOST_READS: u8 = 2;

impl Summer {
    pub(super) fn new() -> Self {
        Summer {
            state: Summing::First,
            result: None,
            reads: 0,
        }
    }

    /// Whether it has ended.
    pub(super) fn step(&mut self, rules: &Rules, thread: usize, memory: &mut Memory) -> bool {
        let estimate = [memory.lower - rules.slack(), memory.upper + rules.slack()];
        let scan = |before| Summing::Scan {
            before,
            lane: 0,
            sum: 0,
        };
        self.state = match self.state {
            Summing::First => {
                memory.begin(thread);
                scan(estimate)
            }
            Summing::Scan { before, lane, sum } => {
                let sum = sum + memory.lanes[lane][0];
                match lane {
                    SHARED => Summing::After { before, sum },
                    _ => Summing::Scan {
                        before,
                        lane: lane + 1,
                        sum,
                    },
                }
            }
            Summing::After { before, sum } => {
                let allowed = [before[0].min(estimate[0]), before[1].max(estimate[1])];
                let held = sum.clamp(allowed[0], allowed[1]);
                self.reads += 1;
                let as_seen = rules.flaw == Some(Flaw::SumAsSeen);
                if held == sum || self.reads == MOST_READS || as_seen {
                    self.result = Some((allowed, if as_seen { sum } else { held }));
                    return true;
                }
                scan(estimate)
            }
        };
        false
    }

    /// The result is one that was allowed, and one that goes up only was there: `seen` is what there was.
    pub(super) fn check(&self, rules: &Rules, seen: &Pair) -> Result<(), String> {
        let Some((allowed, sum)) = self.result else {
            return Ok(());
        };
        // Who is in the middle of a step has moved a word by at most twice a batch and what is added.
        let off = 2 * rules.slack() + 2 * (2 * rules.most + 3);
        let near = (seen[0] - off..=seen[1] + off).contains(&sum);
        if !near || !(allowed[0]..=allowed[1]).contains(&sum) {
            return Err(format!("sum: {sum}, was {seen:?}, allowed {allowed:?}"));
        }
        Ok(())
    }
}

/// Repairs what another process has left.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Syncer(Syncing);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Syncing {
    /// Asks how many have ended, and then how many have begun, in one step: at some moment nobody was in the middle.
    Quiet,
    Hold {
        begun: i8,
    },
    Scan {
        begun: i8,
        held: Pair,
        lane: usize,
        sum: i8,
    },
    /// Asks whether another has begun since.
    Same {
        begun: i8,
        held: Pair,
        sum: i8,
    },
    Exchange {
        held: Pair,
        sum: i8,
    },
    Ended {
        synced: bool,
    },
}

impl Syncer {
    pub(super) fn new() -> Self {
        Syncer(Syncing::Quiet)
    }

    pub(super) fn has_synced(&self) -> bool {
        self.0 == Syncing::Ended { synced: true }
    }

    /// Whether it has ended.
    pub(super) fn step(&mut self, rules: &Rules, memory: &mut Memory) -> bool {
        let asks = rules.flaw != Some(Flaw::SyncsAnyway);
        let asks_before = asks && rules.flaw != Some(Flaw::SyncAsksBehind);
        let words = [memory.upper, memory.lower];
        let scan = |begun, held| Syncing::Scan {
            begun,
            held,
            lane: 0,
            sum: 0,
        };
        let ended = |synced| Syncing::Ended { synced };
        self.0 = match self.0 {
            Syncing::Quiet if asks_before && memory.begun != memory.ended => ended(false),
            Syncing::Quiet => Syncing::Hold {
                begun: memory.begun,
            },
            Syncing::Hold { begun } => match rules.flaw {
                Some(Flaw::SyncAsksBeforeScan) if memory.begun != begun => ended(false),
                _ => scan(begun, words),
            },
            Syncing::Scan {
                begun,
                held,
                lane,
                sum,
            } => {
                let sum = sum + memory.lanes[lane][1];
                match lane {
                    SHARED => Syncing::Same { begun, held, sum },
                    _ => Syncing::Scan {
                        begun,
                        held,
                        lane: lane + 1,
                        sum,
                    },
                }
            }
            Syncing::Same { begun, held, sum } => {
                let same = match rules.flaw {
                    Some(Flaw::SyncAsksBehind) => memory.begun == memory.ended,
                    Some(Flaw::SyncAsksBeforeScan | Flaw::SyncsAnyway) => true,
                    _ => memory.begun == begun,
                };
                match same {
                    true => Syncing::Exchange { held, sum },
                    false => ended(false),
                }
            }
            Syncing::Exchange { held, sum } => {
                let synced = held == words;
                if synced {
                    (memory.upper, memory.lower) = (sum, sum);
                }
                ended(synced)
            }
            Syncing::Ended { synced } => ended(synced),
        };
        matches!(self.0, Syncing::Ended { .. })
    }
}

//! One addition, plain or limited: `bounded/carry.rs` step by step. A section is one load and one commit; after
//! an abort the operation is done on the shared lane, as after many of them.

use crate::SHARED;
use crate::add::Pair;

use super::{Flaw, Memory, Rules};

/// How far a lane's published word moves, down if negative.
pub(super) type Step = i8;

/// What an operation is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Op {
    pub(super) n: i8,
    /// The batch less one.
    pub(super) most: i8,
    pub(super) limit: Option<i8>,
}

/// Where an operation is, and what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Pc {
    /// Loads, if it is limited, the word that must not be passed, and with the lane's pair enters the section. The lane
    /// cannot change while the section runs, so both are one step.
    Fast,
    /// In the section: commits.
    FastCommit { cpu: usize, held: Pair },
    /// With a flaw: looks at the limit before the section.
    FastUnguarded,
    /// Says that it is in the middle.
    Begin,
    /// What is more than half a batch moves the word before the lane, and both words of the lane.
    Announce,
    /// Enters the section of that.
    EnterShift,
    /// In the section: commits.
    Shift { cpu: usize, held: Pair },
    /// The same on the shared lane.
    ShiftLocked,
    /// Loads the pair of some lane.
    Look,
    /// Decides what to move before the lane.
    Move { held: Pair, moved: Step },
    /// Moves the word before the lane.
    Before { held: Pair, moved: Step, by: Step },
    /// Takes back what goes in the wrong direction.
    Turn { held: Pair, moved: Step },
    /// A limited one asks whether it may move the word by so much, or by less if not.
    Ask { held: Pair, by: Step, least: bool },
    /// Was allowed for the word as it was then, and moves it if it still is.
    Raise {
        held: Pair,
        by: Step,
        least: bool,
        word: i8,
    },
    /// Enters the section of the exchange.
    Enter { held: Pair, moved: Step, step: Step },
    /// In the section: commits.
    Commit {
        cpu: usize,
        held: Pair,
        moved: Step,
        step: Step,
    },
    /// Exchanges the pair of the shared lane by one locked instruction.
    Locked { held: Pair, moved: Step, step: Step },
    /// With a flaw: stores what is published after the value.
    Second {
        lane: usize,
        moved: Step,
        step: Step,
    },
    /// Moves the other word.
    Behind { moved: Step, step: Step },
    /// Takes back what was moved and not used.
    TakeBack { by: Step },
    /// A limited one takes back what it moved, since the lane was another, and begins again.
    Again { held: Pair, by: Step },
    /// Says that it is no longer in the middle.
    End { added: bool },
    /// Has told its caller.
    Done { added: bool },
}

impl Pc {
    pub(super) fn in_section(self) -> bool {
        matches!(
            self,
            Pc::FastCommit { .. } | Pc::Commit { .. } | Pc::Shift { .. }
        )
    }

    pub(super) fn abort(&mut self) {
        *self = match *self {
            Pc::Commit {
                held, moved, step, ..
            } => Pc::Locked { held, moved, step },
            Pc::Shift { .. } => Pc::ShiftLocked,
            _ => Pc::Begin,
        };
    }
}

/// As `Step::of` has it.
fn step_of(held: Pair, n: i8, most: i8) -> Step {
    let distance = held[0] - held[1] + n;
    if distance.abs() <= most {
        return 0;
    }
    let direction = distance.signum();
    if most == 0 {
        return distance;
    }
    let up = direction > 0;
    let again = (held[1] & 1 == 0) == up;
    let far = distance.abs() + if again { most } else { 0 };
    let odd = (far ^ held[1]) & 1 == 1;
    direction * (far - i8::from(odd == up))
}

fn least_of(held: Pair, n: i8, most: i8) -> Step {
    let distance = held[0] - held[1] + n;
    distance.signum() * (distance.abs() - most).max(0)
}

impl Op {
    /// Only steps in its own direction.
    fn toward(self, step: Step) -> Step {
        if step.signum() == self.n.signum() {
            step
        } else {
            0
        }
    }

    /// Whether the word that must not be passed leaves room for a step.
    fn allows(self, rules: &Rules, word: i8, by: Step) -> bool {
        match self.limit {
            None => true,
            Some(limit) if self.n > 0 => word + by + rules.slack() <= limit,
            Some(limit) => word + by - rules.slack() >= limit,
        }
    }

    /// Runs one step of an operation on a CPU; `locked` has no lane but the shared one.
    pub(super) fn step(
        self,
        pc: &mut Pc,
        rules: &Rules,
        cpu: usize,
        locked: bool,
        memory: &mut Memory,
    ) {
        let up = self.n > 0;
        let flaw = |flaw| rules.flaw == Some(flaw);
        *pc = match *pc {
            Pc::Fast if locked => Pc::Begin,
            Pc::Fast if flaw(Flaw::GuardOutside) && self.limit.is_some() => {
                if self.allows(rules, memory.word(up), 0) {
                    Pc::FastUnguarded
                } else {
                    Pc::Begin
                }
            }
            Pc::Fast | Pc::FastUnguarded => {
                let held = memory.lanes[cpu];
                let guarded = *pc == Pc::FastUnguarded || self.allows(rules, memory.word(up), 0);
                let within = flaw(Flaw::IgnoresPublished) && held[0] + self.n <= self.most
                    || (held[0] - held[1] + self.n).abs() <= self.most;
                if guarded && within {
                    Pc::FastCommit { cpu, held }
                } else {
                    Pc::Begin
                }
            }
            Pc::FastCommit { cpu, held } => {
                memory.lanes[cpu] = [held[0] + self.n, held[1]];
                memory.commit(self.n);
                Pc::Done { added: true }
            }
            Pc::Begin => {
                memory.begun += 1;
                let whole = self.limit.is_none() && self.n.abs() > self.most / 2;
                if whole && rules.shifts {
                    Pc::Announce
                } else {
                    Pc::Look
                }
            }
            Pc::Announce => {
                *memory.word_mut(up) += self.n;
                if locked {
                    Pc::ShiftLocked
                } else {
                    Pc::EnterShift
                }
            }
            Pc::EnterShift => Pc::Shift {
                cpu,
                held: memory.lanes[cpu],
            },
            Pc::Shift { cpu, held } => self.shift(cpu, held, memory),
            Pc::ShiftLocked => self.shift(SHARED, memory.lanes[SHARED], memory),
            Pc::Look => {
                let held = memory.lanes[if locked { SHARED } else { cpu }];
                self.decide(rules, held, 0)
            }
            Pc::Move { held, moved } => self.decide(rules, held, moved),
            Pc::Before { held, moved, by } => {
                *memory.word_mut(by > 0) += by - moved;
                enter(held, by, by, locked)
            }
            Pc::Turn { held, moved } => {
                *memory.word_mut(moved > 0) -= moved;
                self.decide(rules, held, 0)
            }
            Pc::Ask { held, by, least } => {
                let word = memory.word(up);
                match self.allows(rules, word, by) {
                    true if by == 0 => enter(held, 0, 0, locked),
                    true => Pc::Raise {
                        held,
                        by,
                        least,
                        word,
                    },
                    false if least => Pc::End { added: false },
                    false => {
                        let by = self.toward(least_of(held, self.n, self.most));
                        Pc::Ask {
                            held,
                            by,
                            least: true,
                        }
                    }
                }
            }
            Pc::Raise {
                held,
                by,
                least,
                word,
            } => {
                if memory.word(up) == word {
                    *memory.word_mut(up) += by;
                    enter(held, by, by, locked)
                } else {
                    Pc::Ask { held, by, least }
                }
            }
            Pc::Enter { held, moved, step } => {
                let found = memory.lanes[cpu];
                if found == held {
                    Pc::Commit {
                        cpu,
                        held,
                        moved,
                        step,
                    }
                } else {
                    self.retry(found, moved)
                }
            }
            Pc::Commit {
                cpu,
                held,
                moved,
                step,
            } => self.store(rules, cpu, held, moved, step, memory),
            Pc::Locked { held, moved, step } => {
                let found = memory.lanes[SHARED];
                if found == held {
                    self.store(rules, SHARED, held, moved, step, memory)
                } else {
                    self.retry(found, moved)
                }
            }
            Pc::Second { lane, moved, step } => {
                memory.lanes[lane][1] += step;
                Pc::Behind { moved, step }
            }
            Pc::Behind { moved, step } => {
                if flaw(Flaw::MovesAfter) {
                    *memory.word_mut(step > 0) += step;
                }
                *memory.word_mut(step < 0) += step;
                after(moved, step)
            }
            Pc::TakeBack { by } => {
                *memory.word_mut(by > 0) -= by;
                Pc::End { added: true }
            }
            Pc::Again { held, by } => {
                *memory.word_mut(by > 0) -= by;
                self.decide(rules, held, 0)
            }
            Pc::End { added } => {
                memory.ended += 1;
                Pc::Done { added }
            }
            Pc::Done { added } => Pc::Done { added },
        };
    }

    /// What comes next for a lane that holds this, with a word moved already.
    fn decide(self, rules: &Rules, held: Pair, moved: Step) -> Pc {
        let step = step_of(held, self.n, self.most);
        if self.limit.is_some() {
            return Pc::Ask {
                held,
                by: self.toward(step),
                least: false,
            };
        }
        if rules.flaw == Some(Flaw::MovesAfter) {
            return Pc::Enter {
                held,
                moved: step,
                step,
            };
        }
        if moved != 0 && step != 0 && moved.signum() != step.signum() {
            return Pc::Turn { held, moved };
        }
        if step.abs() > moved.abs() {
            return Pc::Before {
                held,
                moved,
                by: step,
            };
        }
        Pc::Enter { held, moved, step }
    }

    fn shift(self, lane: usize, held: Pair, memory: &mut Memory) -> Pc {
        memory.commit(self.n);
        memory.lanes[lane] = held.map(|word| word + self.n);
        Pc::Behind {
            moved: self.n,
            step: self.n,
        }
    }

    fn retry(self, held: Pair, moved: Step) -> Pc {
        match self.limit {
            Some(_) if moved != 0 => Pc::Again { held, by: moved },
            _ => Pc::Move { held, moved },
        }
    }

    fn store(
        self,
        rules: &Rules,
        lane: usize,
        held: Pair,
        moved: Step,
        step: Step,
        memory: &mut Memory,
    ) -> Pc {
        if rules.flaw == Some(Flaw::BehindFirst) && !memory.moved_early {
            // The other word moves before the lane does.
            memory.moved_early = true;
            *memory.word_mut(step < 0) += step;
            return Pc::Locked { held, moved, step };
        }
        memory.commit(self.n);
        if rules.flaw == Some(Flaw::TwoStores) && step != 0 {
            memory.lanes[lane][0] = held[0] + self.n;
            return Pc::Second { lane, moved, step };
        }
        memory.lanes[lane] = [held[0] + self.n, held[1] + step];
        match step {
            0 => after(moved, step),
            _ => Pc::Behind { moved, step },
        }
    }
}

fn enter(held: Pair, moved: Step, step: Step, locked: bool) -> Pc {
    if locked {
        Pc::Locked { held, moved, step }
    } else {
        Pc::Enter { held, moved, step }
    }
}

fn after(moved: Step, step: Step) -> Pc {
    if moved == step {
        Pc::End { added: true }
    } else {
        Pc::TakeBack { by: moved - step }
    }
}

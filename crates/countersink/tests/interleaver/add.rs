//! An add to the two words of a lane, which readers, takers and gauges are explored against.

use crate::{LANES, SHARED};

/// Two words that are committed together.
pub(crate) type Pair = [i8; 2];
/// The words in every lane.
pub(crate) type Lanes = [Pair; LANES];

/// An add in progress. After an abort it is done on the shared lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Add {
    /// Enters the section and loads the words of the CPU's lane.
    Load,
    /// In the section: stores what follows from them, as its commit.
    Commit { cpu: usize, held: Pair },
    /// Adds to the shared lane by one locked instruction.
    Locked,
}

impl Add {
    pub(crate) fn in_section(self) -> bool {
        matches!(self, Add::Commit { .. })
    }

    pub(crate) fn abort(&mut self) {
        *self = Add::Locked;
    }

    /// Runs one step on a CPU. Whether the add is done.
    pub(crate) fn step(&mut self, n: Pair, cpu: usize, lanes: &mut Lanes) -> bool {
        match *self {
            Add::Load => {
                *self = Add::Commit {
                    cpu,
                    held: lanes[cpu],
                };
                return false;
            }
            Add::Commit { cpu, held } => lanes[cpu] = plus(held, n),
            Add::Locked => lanes[SHARED] = plus(lanes[SHARED], n),
        }
        *self = Add::Load;
        true
    }
}

pub(crate) fn plus(one: Pair, other: Pair) -> Pair {
    [one[0] + other[0], one[1] + other[1]]
}

pub(crate) fn minus(one: Pair, other: Pair) -> Pair {
    [one[0] - other[0], one[1] - other[1]]
}

pub(crate) fn sum(lanes: &Lanes) -> Pair {
    lanes.iter().copied().fold([0; 2], plus)
}

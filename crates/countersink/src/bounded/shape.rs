//! How a tree counter's lanes are grouped, and what follows for its bound.

/// The lanes of one group, and the groups of one group of the next level: 2 to the power of this.
const ARITY: u32 = 3;
/// The most levels between lanes and root: for more CPUs than there are.
pub(crate) const MOST_LEVELS: u32 = 4;

/// The tree over so many CPU lanes.
///
/// Eight lanes make a group, eight groups a group of the next level, until at most eight are left, which the root has.
/// A group is where its first CPU's lane is, so that those of different CPUs share no page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    cpus: u32,
}

impl Shape {
    pub(crate) fn of(cpus: u32) -> Self {
        Shape { cpus: cpus.max(1) }
    }

    /// Levels of groups between the lanes and the root.
    pub(crate) fn levels(self) -> u32 {
        let enough = |levels: &u32| self.groups(*levels) <= 1 << ARITY;
        // The groups of level `levels - 1` are what the root has; those of "level -1" are the lanes.
        (0..MOST_LEVELS).find(enough).unwrap_or(MOST_LEVELS)
    }

    /// How many there are `height` levels above the lanes: the lanes themselves at 0.
    pub(crate) fn groups(self, height: u32) -> u64 {
        u64::from(self.cpus).div_ceil(1 << (ARITY * height))
    }

    /// The first CPU of a CPU's group of a level.
    pub(crate) fn first_cpu(self, cpu: u32, level: u32) -> u32 {
        let shift = ARITY * (level + 1);
        cpu.min(self.cpus - 1) >> shift << shift
    }

    /// How far a group of a level may be from what it has published, if a lane may be so far: as many times further as it has
    /// lanes, so that every level adds the same to the bound.
    pub(crate) fn most(level: u32, most: u64) -> u64 {
        ((most + 1) << (ARITY * (level + 1))) - 1
    }

    /// How much all lanes, the shared one as well, and all groups may have that the root does not know.
    pub(crate) fn slack(self, most: u64) -> u64 {
        let lanes = (u64::from(self.cpus) + 1).saturating_mul(most);
        let levels = 0..self.levels();
        levels.fold(lanes, |slack, level| {
            let groups = self.groups(level + 1);
            slack.saturating_add(groups.saturating_mul(Self::most(level, most)))
        })
    }
}

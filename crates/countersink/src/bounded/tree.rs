//! Tree counters.

use core::cmp::Ordering;
use core::sync::atomic::AtomicI64;
use core::sync::atomic::Ordering::{AcqRel, Acquire};

use countersink_percpu::{Lane, PairSlot, Slots, current_cpu};

use super::carry::{self, Both, InLane, OnThisCpu, Published, Step, Word};
use super::carrying::Carrying;
use super::estimate::Estimate;
use super::local::Local;
use super::shape::Shape;
use crate::kind::{Kind, Unit};
use crate::layout::tree::{GROUPS, SLACK, WORDS};
use crate::metric::{Core, Home};

/// A counter like [`BatchCounter`](crate::BatchCounter) for machines with many CPUs: lanes publish to groups of lanes, and these to larger
/// ones, so that few CPUs write the same word, and the bound stays small.
///
/// ```
/// use countersink::TreeCounter;
///
/// static USED: TreeCounter = TreeCounter::new("pages_used");
/// static FREE: TreeCounter = TreeCounter::new("pages_free");
///
/// FREE.add(1_000_000);
/// USED.inc();
/// assert!(USED.compare(&FREE).is_lt()); // without a sum
/// assert_eq!(USED.sum(), 1);
/// let (under, over) = USED.bound();
/// assert!((USED.read() - under as i64..=USED.read() + over as i64).contains(&1));
/// ```
///
/// With the default batch of 32. *Groups* are what is between lanes and root, *writers* the most CPUs, or groups,
/// that write one word; *rarely* is how many additions of 1 a CPU makes, if all count alike, for each at the root that
/// is on its behalf; the last column is the bound of a `BatchCounter` with its default batch.
///
/// | CPUs | levels | groups | bound | writers | rarely | batch counter |
/// |---:|---:|---:|---:|---:|---:|---:|
/// | 2 | 0 | 0 | 93 | 2 | 32 | 93 |
/// | 4 | 0 | 0 | 155 | 4 | 32 | 155 |
/// | 8 | 0 | 0 | 279 | 8 | 32 | 279 |
/// | 16 | 1 | 2 | 1037 | 8 | 256 | 527 |
/// | 32 | 1 | 4 | 2043 | 8 | 256 | 2079 |
/// | 64 | 1 | 8 | 4055 | 8 | 256 | 8255 |
/// | 128 | 2 | 18 | 12173 | 8 | 2048 | 32895 |
/// | 256 | 2 | 36 | 24315 | 8 | 2048 | 131327 |
/// | 512 | 2 | 72 | 48599 | 8 | 2048 | 524799 |
/// | 1024 | 3 | 146 | 129933 | 8 | 16384 | 2098175 |
///
/// Additions cost what those of a batch counter cost; one that publishes, two locked instructions more for each level that it
/// reaches. Values wrap at 2⁶³.
#[derive(Debug)]
pub struct TreeCounter {
    core: Core<WORDS>,
    local: Local<WORDS>,
}

/// The kernel's.
const DEFAULT_BATCH: u32 = 32;

impl TreeCounter {
    /// A counter with a name, as [`Counter::new`](crate::Counter::new), and a batch of 32.
    pub const fn new(name: &'static str) -> Self {
        TreeCounter {
            core: Core::new(Kind::Tree, name, 0),
            local: Local::new(0),
        }
    }

    /// With another batch, at least 1.
    pub const fn batch(mut self, batch: u32) -> Self {
        self.local = Local::with_batch(batch);
        self
    }

    /// Says what it counts.
    pub const fn help(mut self, help: &'static str) -> Self {
        self.core.help = help;
        self
    }

    /// Says in what unit.
    pub const fn unit(mut self, unit: Unit) -> Self {
        self.core.unit = unit;
        self
    }

    /// Adds one.
    #[inline(always)]
    pub fn inc(&self) {
        self.add(1);
    }

    /// Subtracts one.
    #[inline(always)]
    pub fn dec(&self) {
        self.add(-1);
    }

    /// Subtracts, wrapping.
    #[inline(always)]
    pub fn sub(&self, n: i64) {
        self.add(n.wrapping_neg());
    }

    /// Adds, wrapping.
    #[inline(always)]
    pub fn add(&self, n: i64) {
        let added = match self.local.ready().get() {
            Some(block) => block.pair::<0, i64>().try_add_within(n, self.local.most()),
            None => false,
        };
        if !added {
            self.carry(n);
        }
    }

    #[cold]
    #[inline(never)]
    fn carry(&self, n: i64) {
        if let Some(words) = self.words() {
            let _carrying = Carrying::begin();
            let pair = OnThisCpu(words.pair);
            let cpu = current_cpu().unwrap_or(0);
            carry::add(&pair, i128::from(n), words.most, &words.groups_of(cpu));
        }
    }

    /// About how many: one load.
    #[inline(always)]
    pub fn read(&self) -> i64 {
        let block = self.local.ready().get();
        let root = block.and_then(|block| block.pair::<0, i64>().load(Lane::Bias));
        root.map_or(0, |[upper, lower]| Estimate::between(lower, upper, 0).value)
    }

    /// The same, and how far the sum was from it at most. Loads of three words.
    pub fn estimate(&self) -> Estimate {
        self.words()
            .map_or(Estimate::NOTHING, |words| words.estimate())
    }

    /// How much less, and how much more, the sum can be than what is [read](Self::read). At rest this is what the table says.
    pub fn bound(&self) -> (u64, u64) {
        // What was rounded down is on the upper side.
        let Some(words) = self.words() else {
            return (0, 0);
        };
        let [upper, lower] = words.root();
        let slack = words.slack();
        let gap = upper.wrapping_sub(lower) as u64;
        let known = |part: u64| slack.saturating_add(part);
        (known(gap / 2), known(gap.div_ceil(2)))
    }

    /// How many, as [`BatchCounter::sum`](crate::BatchCounter::sum). Loads for each possible CPU.
    pub fn sum(&self) -> i64 {
        self.words().map_or(0, |words| {
            carry::sum_within(&words.pair, || words.estimate())
        })
    }

    /// Whether it is less than, equal to or greater than another counter: by estimates where these are enough, by sums
    /// otherwise.
    pub fn compare(&self, other: &TreeCounter) -> Ordering {
        let (low, high) = self.estimate().range();
        let (other_low, other_high) = other.estimate().range();
        if high < other_low {
            Ordering::Less
        } else if low > other_high {
            Ordering::Greater
        } else {
            self.sum().cmp(&other.sum())
        }
    }

    /// The same with a value.
    pub fn compare_value(&self, value: i64) -> Ordering {
        match self.estimate().range() {
            (_, high) if high < value => Ordering::Less,
            (low, _) if low > value => Ordering::Greater,
            _ => self.sum().cmp(&value),
        }
    }

    /// Makes it another value, and returns what it was. Nothing is zeroed: the difference is added. Each addition that runs
    /// meanwhile is, for itself, part of what it was or comes on top.
    pub fn set(&self, value: i64) -> i64 {
        self.words().map_or(0, |words| words.set(value))
    }

    /// Where it counts. Registers it, if nothing has.
    pub fn home(&self) -> Home {
        self.core.home()
    }

    fn words(&self) -> Option<Tree<'static>> {
        let all = match self.local.ready().slots() {
            Some(all) => all,
            None => {
                let all = self.core.words()?;
                let widen = |batch| Tree::of(&all, u64::from(batch) - 1).map(|tree| tree.widen());
                self.local.prepare(
                    all,
                    || DEFAULT_BATCH,
                    |batch| widen(batch).unwrap_or_default(),
                );
                all
            }
        };
        Tree::of(&all, self.local.most())
    }
}

impl crate::family::Metric for TreeCounter {
    fn labelled(&self, labels: &str) -> Self {
        TreeCounter {
            core: self.core.labelled(labels),
            local: self.local.same(),
        }
    }

    fn register(&self) {
        self.core.register_alone();
        self.words();
    }
}

/// The words of a tree counter.
///
/// In the bias lane, the first pair is the root: the word that is never below what has been published to it, and the one that is never
/// above. In the lane of a group's first CPU, two pairs for its level: what is known from above and what of it is published,
/// and the same from below.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tree<'a> {
    all: Slots<'a>,
    pair: PairSlot<'a, i64>,
    slack: PairSlot<'a, i64>,
    shape: Shape,
    /// How far a lane may be from what it has published.
    most: u64,
}

impl<'a> Tree<'a> {
    pub(crate) fn of(all: &Slots<'a>, most: u64) -> Option<Self> {
        let pair = all.pair(0)?.signed();
        Some(Tree {
            all: *all,
            pair,
            slack: all.pair(SLACK)?.signed(),
            shape: Shape::of(u32::try_from(pair.lanes() - 1).unwrap_or(u32::MAX)),
            most,
        })
    }

    /// Notes what lanes and groups may have that the root does not know.
    fn widen(&self) {
        let [slack, _] = self.slack.bias_words();
        let most = i64::try_from(self.shape.slack(self.most)).unwrap_or(i64::MAX - 1);
        slack.fetch_max(most, AcqRel);
    }

    fn slack(&self) -> u64 {
        let [slack, _] = self.slack.bias_words();
        slack.load(Acquire).max(0) as u64
    }

    fn root(&self) -> [i64; 2] {
        self.pair.load(Lane::Bias).unwrap_or_default()
    }

    pub(crate) fn estimate(&self) -> Estimate {
        let [upper, lower] = self.root();
        Estimate::between(lower, upper, self.slack() as i64)
    }

    /// See [`carry::set`]. The shared lane publishes to the root.
    pub(crate) fn set(&self, value: i64) -> i64 {
        let _carrying = Carrying::begin();
        let [upper, lower] = self.pair.bias_words();
        carry::set(&self.pair, value, &Both { upper, lower })
    }

    /// What a CPU's lane publishes to. Any CPU's would do: what counts is the sum over all groups.
    pub(crate) fn groups_of(&self, cpu: u32) -> Both<Above<'a>> {
        let above = |upper| Above {
            tree: *self,
            cpu,
            level: 0,
            upper,
        };
        Both {
            upper: above(true),
            lower: above(false),
        }
    }
}

/// What is above a lane or a group, on one side: a group, or the root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Above<'a> {
    tree: Tree<'a>,
    cpu: u32,
    level: u32,
    /// The side that is never below what is published to it.
    upper: bool,
}

impl Above<'_> {
    fn root(&self) -> &AtomicI64 {
        let [upper, lower] = self.tree.pair.bias_words();
        if self.upper { upper } else { lower }
    }
}

impl Word for Above<'_> {
    fn add(&self, n: i128) {
        let pair = self
            .tree
            .all
            .pair(GROUPS + 4 * self.level as usize + if self.upper { 0 } else { 2 });
        match pair.filter(|_| self.level < self.tree.shape.levels()) {
            Some(pair) if n != 0 => {
                let first = self.tree.shape.first_cpu(self.cpu, self.level);
                let group = InLane(pair.signed(), Lane::Cpu(first));
                let most = Shape::most(self.level, self.tree.most);
                carry::add(&group, n, most, self);
            }
            Some(_) => {}
            None => self.root().add(n),
        }
    }
}

/// How a group publishes to what is above it: on its side only.
impl Published for Above<'_> {
    fn before(&self, step: Step) {
        if step.up == self.upper {
            self.next().add(step.signed());
        }
    }

    fn behind(&self, step: Step) {
        if step.up != self.upper {
            self.next().add(step.signed());
        }
    }

    fn take_back(&self, step: Step) {
        if step.up == self.upper {
            self.next().add(-step.signed());
        }
    }
}

impl Above<'_> {
    fn next(&self) -> Self {
        Above {
            level: self.level + 1,
            ..*self
        }
    }
}

#[cfg(all(test, target_os = "linux", not(countersink_portable)))]
mod tests {
    use std::os::fd::AsFd;

    use countersink_percpu::{Mechanism, Segment};
    use proptest::prelude::*;

    use super::*;

    /// A tree over so many CPUs, whichever this machine has.
    fn segment(cpus: u32) -> Segment {
        let file = tempfile::tempfile().expect("a file");
        let bytes = Segment::bytes(cpus).expect("a size");
        file.set_len(bytes as u64).expect("a length");
        Segment::of_fd(file.as_fd(), 0, cpus, Mechanism::LockedLanes).expect("memory")
    }

    fn tree(segment: &Segment, batch: u32) -> Tree<'_> {
        let all = segment.slots(0, WORDS).expect("words");
        let tree = Tree::of(&all, u64::from(batch) - 1).expect("a tree");
        tree.widen();
        tree
    }

    /// Adds as a thread on this CPU would.
    fn add(tree: &Tree<'_>, cpu: u32, n: i64) {
        let lane = InLane(tree.pair, Lane::Cpu(cpu));
        carry::add(&lane, i128::from(n), tree.most, &tree.groups_of(cpu));
    }

    fn error(tree: &Tree<'_>, sum: i64) -> u64 {
        let estimate = tree.estimate();
        let error = sum.wrapping_sub(estimate.value).unsigned_abs();
        assert!(error <= estimate.bound, "{error} with {estimate:?}");
        error
    }

    /// All CPUs count alike, up and then down: the worst for an estimate.
    #[test]
    fn the_bound_holds_and_needs_its_groups() {
        for cpus in [2, 3, 8, 9, 16, 64, 65, 256, 1024] {
            let segment = segment(cpus);
            let tree = tree(&segment, 4);
            let lanes = u64::from(cpus) * tree.most;
            let (mut sum, mut worst) = (0, 0);
            let rounds = 6 * 4 * 8_i64.pow(tree.shape.levels());
            for round in 0..2 * rounds {
                let n = if round < rounds { 1 } else { -1 };
                for cpu in 0..cpus {
                    add(&tree, cpu, n);
                    sum += n;
                    worst = worst.max(error(&tree, sum));
                }
            }
            assert_eq!((sum, carry::sum(&tree.pair, 0)), (0, 0));
            println!("{cpus} CPUs: {worst} of {}", tree.slack());
            // Without what groups hold back, the bound would not do.
            assert!(tree.shape.levels() == 0 || worst > lanes, "{worst} {lanes}");
            assert!(worst >= lanes / 2);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn sums_are_exact_and_estimates_within_the_bound(
            cpus in prop::sample::select(vec![1_u32, 2, 7, 8, 9, 64, 100, 520]),
            batch in prop::sample::select(vec![1_u32, 2, 32]),
            adds in prop::collection::vec(
                (any::<u32>(), prop_oneof![-70..70_i64, any::<i64>()], any::<bool>()), 1..200),
        ) {
            let segment = segment(cpus);
            let tree = tree(&segment, batch);
            let mut sum = 0_i64;
            for (cpu, n, set) in adds {
                if set && n % 8 == 0 {
                    prop_assert_eq!(tree.set(n), sum);
                    sum = n;
                } else {
                    add(&tree, cpu % cpus, n);
                    sum = sum.wrapping_add(n);
                }
                error(&tree, sum);
                prop_assert_eq!(carry::sum(&tree.pair, 0), sum);
            }
        }
    }

    /// The table in the documentation is computed here.
    #[test]
    fn the_table_is_right() {
        let text = include_str!("tree.rs");
        for cpus in (1..=10).map(|power| 1_u32 << power) {
            let shape = Shape::of(cpus);
            let levels = shape.levels();
            let groups: u64 = (1..=levels).map(|height| shape.groups(height)).sum();
            let writers = (0..=levels).map(|height| shape.groups(height).min(8)).max();
            let rarely = u64::from(DEFAULT_BATCH) << (3 * levels);
            let batch = u64::from(2 * cpus).max(32);
            let row = format!(
                "/// | {cpus} | {levels} | {groups} | {} | {} | {rarely} | {} |\n",
                shape.slack(u64::from(DEFAULT_BATCH) - 1),
                writers.unwrap_or(0),
                (u64::from(cpus) + 1) * (batch - 1),
            );
            assert!(text.contains(&row), "{row}");
        }
    }
}

//! What the words of a metric mean: reading them, taking what they hold, and extremes.
//!
//! Used by the program itself and by whoever resets its metrics from outside. Nothing here writes a CPU
//! lane but [`Extreme::store`], on the CPU that it runs on.

use countersink_percpu::{Lane, PairSlot, Slot, Slots};

use crate::bounded;
use crate::clock;
use crate::kind::Kind;
use crate::layout::{self, span};

/// How often a value is read again because it was reset meanwhile. Resets that fast are no way to live.
const MOST_READS: usize = 64;

/// Attempts that others or the scheduler can make fail.
const MOST_ATTEMPTS: u32 = 1000;

/// The largest of something, or the smallest: two words, generation and value, in each lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extreme {
    Most,
    Least,
}

impl Extreme {
    /// Whether a value has to replace the one that is held.
    #[inline(always)]
    pub(crate) fn replaces(self, value: u64, held: u64) -> bool {
        match self {
            Extreme::Most => value > held,
            Extreme::Least => value < held,
        }
    }

    /// Stores a value that was measured at a moment, unless the lane has one that is as extreme.
    ///
    /// A moment before the present generation began belongs to what was reset. A lane may have a
    /// newer generation than the one that was seen here, which must stay: a reset came in between.
    pub(crate) fn store(
        self,
        generations: &PairSlot<'_>,
        pair: &PairSlot<'_>,
        value: u64,
        moment: u64,
    ) {
        let Some([generation, began]) = generations.load(Lane::Bias) else {
            return;
        };
        if (moment.wrapping_sub(began) as i64) < 0 {
            return;
        }
        let mut held = [0, 0];
        // On whatever CPU each attempt runs; what it finds there tells whether there is anything to
        // store. Attempts fail when the thread is moved between lanes, so not without end.
        for _ in 0..MOST_ATTEMPTS {
            let stays =
                held[0] > generation || held[0] == generation && !self.replaces(value, held[1]);
            if stays {
                return;
            }
            match pair.compare_exchange(held, [generation, value]) {
                Ok(_) => return,
                Err(found) => held = found,
            }
        }
    }

    /// The extreme of a generation over all lanes.
    pub(crate) fn of(self, pair: &PairSlot<'_>, generation: u64) -> Option<u64> {
        let values = pair.values().filter(|held| held[0] == generation);
        let values = values.map(|held| held[1]);
        match self {
            Extreme::Most => values.max(),
            Extreme::Least => values.min(),
        }
    }
}

/// A sum that is not mixed with a reset which happens meanwhile.
pub(crate) fn sum(slot: &Slot<'_>) -> u64 {
    let mut sum = slot.sum();
    for _ in 0..MOST_READS {
        let before = slot.load(Lane::Bias);
        sum = slot.sum();
        if slot.load(Lane::Bias) == before {
            break;
        }
    }
    sum
}

/// The same of two words that belong together.
pub(crate) fn sums(pair: &PairSlot<'_>) -> [u64; 2] {
    let mut sums = pair.sum();
    for _ in 0..MOST_READS {
        let before = pair.load(Lane::Bias);
        sums = pair.sum();
        if pair.load(Lane::Bias) == before {
            break;
        }
    }
    sums
}

/// Bounds of a gauge: the lower one is at most what it was when its ups had been read, the upper one at
/// least what it was when they began to be.
pub(crate) fn gauge(words: &Slots<'_>) -> Option<(i64, i64)> {
    let (ups, downs) = (words.get(0)?, words.get(1)?);
    let mut bounds = (0, 0);
    for _ in 0..MOST_READS {
        let bias = [ups.load(Lane::Bias), downs.load(Lane::Bias)];
        let first = downs.sum();
        let up = ups.sum();
        let second = downs.sum();
        bounds = (
            up.wrapping_sub(second) as i64,
            up.wrapping_sub(first) as i64,
        );
        let same = bias == [ups.load(Lane::Bias), downs.load(Lane::Bias)];
        if same && first == second {
            break;
        }
    }
    Some(bounds)
}

/// What a span's words hold, in ticks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RawSpan {
    pub(crate) time: [u64; 2],
    pub(crate) bytes: [u64; 2],
    pub(crate) longest: Option<u64>,
    pub(crate) shortest: Option<u64>,
    pub(crate) most_bytes: Option<u64>,
    pub(crate) fewest_bytes: Option<u64>,
    pub(crate) migrated: u64,
    pub(crate) skipped: u64,
    pub(crate) invalid: u64,
    /// Buckets that are not empty: number and values.
    pub(crate) buckets: Vec<(usize, u64)>,
}

/// Whether to leave the values there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Leave,
    /// With the clock of this number, the region's.
    Take(u32),
}

impl Then {
    /// With the clock of this process.
    pub(crate) fn take() -> Self {
        Then::Take(clock::source().code())
    }
}

/// The extremes of a span.
#[derive(Clone, Copy, Debug, Default)]
struct Extremes {
    longest: Option<u64>,
    shortest: Option<u64>,
    most_bytes: Option<u64>,
    fewest_bytes: Option<u64>,
}

impl Extremes {
    fn of(words: &Slots<'_>, generation: u64) -> Self {
        let extreme = |which: Extreme, at| which.of(&words.pair(at)?, generation);
        Extremes {
            longest: extreme(Extreme::Most, span::LONGEST),
            shortest: extreme(Extreme::Least, span::SHORTEST),
            most_bytes: extreme(Extreme::Most, span::MOST_BYTES),
            fewest_bytes: extreme(Extreme::Least, span::FEWEST_BYTES),
        }
    }

    fn read(words: &Slots<'_>) -> Option<Self> {
        let generation = words.get(span::LONGEST)?.load(Lane::Bias)?;
        Some(Self::of(words, generation))
    }

    /// What they are, and a new generation begins.
    ///
    /// They are looked at before the new generation is there, since from then on new values replace
    /// them. The clock is read after the generation that is to end, so that of two resets the second begins later.
    fn take(words: &Slots<'_>, clock: u32) -> Option<Self> {
        let generations = words.pair(span::LONGEST)?;
        let mut held = generations.load(Lane::Bias)?;
        loop {
            let extremes = Self::of(words, held[0]);
            let next = [held[0].wrapping_add(1), clock::ticks_of(clock)?];
            match generations.compare_exchange_bias(held, next) {
                Ok(_) => return Some(extremes),
                Err(newer) => held = newer,
            }
        }
    }
}

impl Then {
    /// The sum of a word over the lanes.
    pub(crate) fn one(self, words: &Slots<'_>, at: usize) -> u64 {
        match (words.get(at), self) {
            (Some(slot), Then::Leave) => sum(&slot),
            (Some(slot), Then::Take(_)) => slot.replace(0),
            (None, _) => 0,
        }
    }

    /// The sums of two words that belong together.
    pub(crate) fn two(self, words: &Slots<'_>, at: usize) -> [u64; 2] {
        match (words.pair(at), self) {
            (Some(pair), Then::Leave) => sums(&pair),
            (Some(pair), Then::Take(_)) => pair.replace([0; 2]),
            (None, _) => [0; 2],
        }
    }

    /// What a span holds.
    pub(crate) fn span(self, words: &Slots<'_>) -> RawSpan {
        let extremes = match self {
            Then::Leave => Extremes::read(words),
            Then::Take(clock) => Extremes::take(words, clock),
        };
        let extremes = extremes.unwrap_or_default();
        RawSpan {
            time: self.two(words, span::TIME),
            bytes: self.two(words, span::BYTES),
            migrated: self.one(words, span::MIGRATED),
            skipped: self.one(words, span::SKIPPED),
            invalid: self.one(words, span::INVALID),
            buckets: self.buckets(words, span::WORDS),
            longest: extremes.longest,
            shortest: extremes.shortest,
            most_bytes: extremes.most_bytes,
            fewest_bytes: extremes.fewest_bytes,
        }
    }

    /// The buckets from a word on that are not empty.
    pub(crate) fn buckets(self, words: &Slots<'_>, first: usize) -> Vec<(usize, u64)> {
        let count = words.len().saturating_sub(first);
        let buckets = (0..count).map(|number| (number, self.one(words, first + number)));
        buckets.filter(|bucket| bucket.1 != 0).collect()
    }
}

/// Makes words that are a new metric's read as 0. `used` says whether an earlier metric had them: words
/// that nobody had are not looked at, so that they take no memory.
pub(crate) fn begin(words: &Slots<'_>, kind: Kind, used: bool) {
    if kind.keeps_words() {
        if used {
            bounded::clear(words);
        }
        return;
    }
    if used {
        // One by one, which allocates nothing: this may be a signal handler.
        for at in 0..words.len() {
            let is_extreme = (span::LONGEST..span::MIGRATED).contains(&at);
            if (kind != Kind::Span || !is_extreme)
                && let Some(word) = words.get(at)
            {
                word.replace(0);
            }
        }
    }
    if kind == Kind::Span {
        begin_first_generation(words);
    }
}

/// Where batch and tree counters say how much lanes may have unpublished.
fn slack<'a>(words: &Slots<'a>) -> Option<PairSlot<'a, i64>> {
    let last = words.len().checked_sub(2)?;
    Some(words.pair(last)?.signed())
}

/// Says of new words how much lanes may have unpublished, as the old ones say it.
pub(crate) fn copy_slack(old: &Slots<'_>, new: &Slots<'_>) {
    if let (Some(old), Some(new)) = (slack(old), slack(new)) {
        let held = old.load(Lane::Bias).unwrap_or_default();
        let _ = new.compare_exchange_bias([0, 0], held);
    }
}

/// Begins a metric's first generation, to which all of its events belong: that one, too, which stopped
/// just before the metric was registered for it. Not generation 0, which lanes hold that were never written.
fn begin_first_generation(words: &Slots<'_>) {
    if let Some(generations) = words.pair(span::LONGEST)
        && let Some(held) = generations.load(Lane::Bias)
    {
        let _ = generations.compare_exchange_bias(held, [held[0].wrapping_add(1), 0]);
    }
}

/// Makes a gauge's value another, and returns what it was.
///
/// Ups and downs are exchanged together, but are not read at one moment: only where nothing went down
/// in between is their difference a value that the gauge had. Where others count down
/// all the time, some attempts later, it is taken as it is.
pub(crate) fn set_gauge(words: &Slots<'_>, value: i64) -> Option<i64> {
    let (ups, downs, pair) = (words.get(0)?, words.get(1)?, words.pair(0)?);
    let new = if value < 0 {
        [0, value.unsigned_abs()]
    } else {
        [value as u64, 0]
    };
    let mut attempts = 0;
    loop {
        let held = pair.load(Lane::Bias)?;
        let first = downs.sum();
        let sums = [ups.sum(), downs.sum()];
        attempts += 1;
        if first != sums[1] && attempts < MOST_ATTEMPTS {
            continue;
        }
        let bias =
            core::array::from_fn(|i: usize| held[i].wrapping_sub(sums[i]).wrapping_add(new[i]));
        if pair.compare_exchange_bias(held, bias).is_ok() {
            return Some(sums[0].wrapping_sub(sums[1]) as i64);
        }
    }
}

/// The word of the bucket of a value.
#[inline(always)]
pub(crate) fn bucket<'a>(
    words: &Slots<'a>,
    first: usize,
    grouping: u32,
    value: u64,
) -> Option<Slot<'a>> {
    words.get(first + layout::bucket(grouping, value))
}

//! Gauges.

use countersink_percpu::PairSlot;

use crate::kind::{Kind, Unit};
use crate::metric::{Core, Home};
use crate::values;

/// Something that goes up and down, such as connections that are open.
///
/// What went up and what went down are kept apart, so that a reader who looks while others count never
/// sees a value far from any that there was.
///
/// Counting costs what a [`Counter`](crate::Counter) costs; reading, loads of three words for each possible
/// CPU. What a process that was killed had counted up stays up.
///
/// ```
/// use countersink::Gauge;
///
/// static OPEN: Gauge = Gauge::new("connections_open");
///
/// OPEN.inc();
/// OPEN.add(3);
/// OPEN.dec();
/// assert_eq!(OPEN.value(), 3);
/// ```
#[derive(Debug)]
pub struct Gauge {
    core: Core<2>,
}

impl Gauge {
    /// A gauge with a name, as [`Counter::new`](crate::Counter::new).
    pub const fn new(name: &'static str) -> Self {
        Gauge {
            core: Core::new(Kind::Gauge, name, 0),
        }
    }

    /// Says what it shows.
    pub const fn help(mut self, help: &'static str) -> Self {
        self.core.help = help;
        self
    }

    /// Says in what unit.
    pub const fn unit(mut self, unit: Unit) -> Self {
        self.core.unit = unit;
        self
    }

    /// One more.
    #[inline(always)]
    pub fn inc(&self) {
        match self.core.block() {
            Some(words) => words.slot::<0, u64>().inc(),
            None => self.first(1),
        }
    }

    /// One less.
    #[inline(always)]
    pub fn dec(&self) {
        match self.core.block() {
            Some(words) => words.slot::<1, u64>().inc(),
            None => self.first(-1),
        }
    }

    /// So many more, or less if negative; wraps.
    #[inline(always)]
    pub fn add(&self, n: i64) {
        match self.core.block() {
            Some(words) if n >= 0 => words.slot::<0, u64>().add(n as u64),
            Some(words) => words.slot::<1, u64>().add(n.unsigned_abs()),
            None => self.first(n),
        }
    }

    /// So many less, or more if negative; wraps.
    #[inline(always)]
    pub fn sub(&self, n: i64) {
        match self.core.block() {
            Some(words) if n >= 0 => words.slot::<1, u64>().add(n as u64),
            Some(words) => words.slot::<0, u64>().add(n.unsigned_abs()),
            None => self.first(n.wrapping_neg()),
        }
    }

    #[cold]
    #[inline(never)]
    fn first(&self, n: i64) {
        self.core.register();
        if let Some(word) = self.core.word(usize::from(n < 0)) {
            word.add(n.unsigned_abs());
        }
    }

    /// The value. Exact if nobody counts down while it is read, which is tried some times; otherwise
    /// in the middle of the [`bounds`](Self::bounds).
    pub fn value(&self) -> i64 {
        let (low, high) = self.bounds();
        low.wrapping_add((high.wrapping_sub(low)) / 2)
    }

    /// Two values between which it was while it was read.
    pub fn bounds(&self) -> (i64, i64) {
        let words = self.core.words();
        words
            .and_then(|words| values::gauge(&words))
            .unwrap_or((0, 0))
    }

    /// Makes it another value, and returns what it was. For gauges that are set and not counted: where
    /// others count at the same time, what they add comes on top, but while they count down without pause
    /// what it was cannot be read at one moment, and the new value is off by as much.
    pub fn set(&self, value: i64) -> i64 {
        let words = self.core.words();
        let was = words.and_then(|words| values::set_gauge(&words, value));
        self.core.note_reset();
        was.unwrap_or(0)
    }

    /// What went up and what went down, since the gauge began or was last set.
    pub fn ups_and_downs(&self) -> (u64, u64) {
        let Some(pair) = self.pair() else {
            return (0, 0);
        };
        let [ups, downs] = values::sums(&pair);
        (ups, downs)
    }

    fn pair(&self) -> Option<PairSlot<'static>> {
        self.core.words()?.pair(0)
    }

    /// Where it counts. Registers it, if nothing has.
    pub fn home(&self) -> Home {
        self.core.home()
    }
}

impl crate::family::Metric for Gauge {
    fn labelled(&self, labels: &str) -> Self {
        Gauge {
            core: self.core.labelled(labels),
        }
    }

    fn register(&self) {
        self.core.register_alone();
    }
}

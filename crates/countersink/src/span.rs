//! Spans: timed pieces of code.

use countersink_percpu::{Block, Lane};

use crate::clock::{self, Moment, Source};
use crate::kind::{Kind, Unit};
use crate::layout::{MOST_GROUPING, span};
use crate::metric::{Core, Home};
use crate::reader;
use crate::values::{self, Extreme, RawSpan, Then};

/// Times longer than this, and negative ones, are absurd: 2⁶² ticks are decades.
const MOST_TICKS: u64 = 1 << 62;

/// How often a piece of code runs, how long it takes, and how many bytes it handles.
///
/// ```
/// use countersink::Span;
///
/// static LOOKUP: Span = Span::new("lookup").help("Looking up a key");
///
/// fn look_up() {
///     let running = LOOKUP.start();
///     // ...
///     running.stop();
/// }
///
/// look_up();
/// assert_eq!(LOOKUP.read().events, 1);
/// ```
///
/// Events and their total, shortest and longest time are recorded where the span stops, on the lane of
/// the CPU that it is on by then. The time is that of the clock: it includes what the thread spent off the CPU, preempted or asleep.
/// Spans may be nested, and recursive: each is counted with all of its time. A span may stop on another thread.
///
/// With the cycle counter ([`clock`]) a span costs little more than reading the clock twice.
/// If the thread changed CPU, the event is counted as migrated where the clock is the same on
/// all CPUs; dropping it would favour short spans. Where it may not be the same ([`Source::CyclesOfEachCpu`])
/// the event is thrown away and counted as skipped. A time that is negative or absurd is
/// thrown away and counted as invalid.
#[derive(Debug)]
pub struct Span {
    core: Core<{ span::WORDS }>,
}

impl Span {
    /// A span with a name, as [`Counter::new`](crate::Counter::new).
    pub const fn new(name: &'static str) -> Self {
        let mut core = Core::new(Kind::Span, name, 0);
        core.unit = Unit::Ticks;
        Span { core }
    }

    /// Says what is timed.
    pub const fn help(mut self, help: &'static str) -> Self {
        self.core.help = help;
        self
    }

    /// Adds a histogram of the times, for percentiles; costs one more count. The grouping power is
    /// that of [`Histogram`](crate::Histogram), and 7 if it is more.
    pub const fn with_histogram(mut self, grouping: u32) -> Self {
        self.core.grouping = if grouping > MOST_GROUPING {
            MOST_GROUPING + 1
        } else {
            grouping + 1
        };
        self
    }

    /// Starts the clock.
    #[inline(always)]
    pub fn start(&self) -> Running<'_> {
        Running {
            span: self,
            started: clock::now(),
        }
    }

    /// Records an event that began and ended at these moments of [`clock::now`].
    #[inline(always)]
    pub fn record(&self, started: Moment, stopped: Moment) {
        if let Some(ended) = self.end(started, stopped) {
            self.extremes(&ended, Pairs::TIME, ended.ticks);
        }
    }

    /// The same, and the bytes that it handled.
    #[inline(always)]
    pub fn record_bytes(&self, started: Moment, stopped: Moment, bytes: u64) {
        let Some(ended) = self.end(started, stopped) else {
            return;
        };
        self.extremes(&ended, Pairs::TIME, ended.ticks);
        // As the time of each event, the bytes of each are added with their count at once.
        ended.words.pair::<{ span::BYTES }, u64>().add([1, bytes]);
        self.extremes(&ended, Pairs::BYTES, bytes);
    }

    /// Counts the event and its time; `None` if it was thrown away.
    #[inline(always)]
    fn end(&self, started: Moment, stopped: Moment) -> Option<Ended> {
        let words = match self.core.block() {
            Some(words) => words,
            None => self.first()?,
        };
        let ticks = stopped.ticks.wrapping_sub(started.ticks);
        let moved = started.cpu != stopped.cpu;
        if moved || ticks >= MOST_TICKS {
            unusual(words, moved, ticks)?;
        }
        words.pair::<{ span::TIME }, u64>().add([1, ticks]);
        if self.core.grouping != 0 {
            self.add_to_bucket(ticks);
        }
        Some(Ended {
            words,
            ticks,
            stopped,
        })
    }

    #[inline]
    fn add_to_bucket(&self, ticks: u64) {
        let grouping = self.core.grouping - 1;
        if let Some(words) = self.core.registered()
            && let Some(bucket) = values::bucket(&words, span::WORDS, grouping, ticks)
        {
            bucket.inc();
        }
    }

    /// Stores a value where it is the largest or smallest of its generation.
    ///
    /// Most are not, which takes a few loads to see: from the lane of the CPU on which the span stopped,
    /// even if the thread has been moved since. Whatever lane it is, if it has a value that is as extreme, so has
    /// the whole. The generation comes before the value, since a lane's value may change to that
    /// of a newer generation in between, but not to that of an older one.
    #[inline(always)]
    fn extremes(&self, ended: &Ended, pairs: Pairs, value: u64) {
        let words = &ended.words;
        let generation = words.slot::<{ span::LONGEST }, u64>().load(Lane::Bias);
        let lane = Lane::Cpu(ended.stopped.cpu);
        let [most, least] = pairs.words(words);
        let kept = |[held, extreme]: [countersink_percpu::Slot<'_>; 2], which: Extreme| {
            held.load(lane) == generation
                && extreme
                    .load(lane)
                    .is_some_and(|extreme| !which.replaces(value, extreme))
        };
        if !kept(most, Extreme::Most) || !kept(least, Extreme::Least) {
            new_extreme(*words, pairs, value, ended.stopped.ticks);
        }
    }

    #[cold]
    #[inline(never)]
    fn first(&self) -> Option<Block<'static, { span::WORDS }>> {
        self.core.register();
        self.core.block()
    }

    /// What was recorded; times in nanoseconds, but for the histogram's, which are ticks:
    /// [`clock::in_nanoseconds`] converts them. Loads for each word, bucket and possible CPU.
    pub fn read(&self) -> reader::Span {
        self.values(Then::Leave)
    }

    /// What was recorded, which begins at nothing again.
    ///
    /// What others record meanwhile is in this or in the next; the shortest and longest of the next are
    /// of events that stopped after this was called. Numbers that are not committed together
    /// (see the format) are taken one after the other.
    pub fn take(&self) -> reader::Span {
        let taken = self.values(Then::take());
        self.core.note_reset();
        taken
    }

    fn values(&self, then: Then) -> reader::Span {
        let words = self.core.words();
        let raw = words.map_or(RawSpan::default(), |words| then.span(&words));
        raw.in_nanoseconds(self.core.ticks_per_second(), self.core.grouping)
    }

    /// Where it counts. Registers it, if nothing has.
    pub fn home(&self) -> Home {
        self.core.home()
    }
}

/// An event that was counted.
struct Ended {
    words: Block<'static, { span::WORDS }>,
    ticks: u64,
    stopped: Moment,
}

/// Which extremes.
#[derive(Clone, Copy, PartialEq)]
struct Pairs(bool);

impl Pairs {
    const TIME: Pairs = Pairs(false);
    const BYTES: Pairs = Pairs(true);

    /// Generation and value of the largest and of the smallest.
    #[inline(always)]
    fn words<'a>(
        self,
        words: &Block<'a, { span::WORDS }>,
    ) -> [[countersink_percpu::Slot<'a>; 2]; 2] {
        if self == Pairs::TIME {
            [
                [
                    words.slot::<{ span::LONGEST }, u64>(),
                    words.slot::<{ span::LONGEST + 1 }, u64>(),
                ],
                [
                    words.slot::<{ span::SHORTEST }, u64>(),
                    words.slot::<{ span::SHORTEST + 1 }, u64>(),
                ],
            ]
        } else {
            [
                [
                    words.slot::<{ span::MOST_BYTES }, u64>(),
                    words.slot::<{ span::MOST_BYTES + 1 }, u64>(),
                ],
                [
                    words.slot::<{ span::FEWEST_BYTES }, u64>(),
                    words.slot::<{ span::FEWEST_BYTES + 1 }, u64>(),
                ],
            ]
        }
    }
}

#[cold]
#[inline(never)]
fn new_extreme(words: Block<'_, { span::WORDS }>, pairs: Pairs, value: u64, stopped: u64) {
    let generations = words.pair::<{ span::LONGEST }, u64>();
    let (most, least) = if pairs == Pairs::TIME {
        (generations, words.pair::<{ span::SHORTEST }, u64>())
    } else {
        (
            words.pair::<{ span::MOST_BYTES }, u64>(),
            words.pair::<{ span::FEWEST_BYTES }, u64>(),
        )
    };
    Extreme::Most.store(&generations, &most, value, stopped);
    Extreme::Least.store(&generations, &least, value, stopped);
}

/// An event whose thread changed CPU, or whose time is absurd; `None` if it is thrown away.
#[cold]
#[inline(never)]
fn unusual(words: Block<'_, { span::WORDS }>, moved: bool, ticks: u64) -> Option<()> {
    if moved && clock::source() == Source::CyclesOfEachCpu {
        words.slot::<{ span::SKIPPED }, u64>().inc();
        return None;
    }
    if ticks >= MOST_TICKS {
        words.slot::<{ span::INVALID }, u64>().inc();
        return None;
    }
    words.slot::<{ span::MIGRATED }, u64>().inc();
    Some(())
}

/// A span that has started. Dropping it stops it.
#[derive(Debug)]
#[must_use = "a span stops when this is dropped"]
pub struct Running<'a> {
    span: &'a Span,
    started: Moment,
}

impl Running<'_> {
    /// Stops the clock and records the event; dropping it does the same.
    #[inline(always)]
    pub fn stop(self) {
        let stopped = clock::now();
        self.span.record(self.started, stopped);
        core::mem::forget(self);
    }

    /// Stops the clock and records the event, and the bytes that it handled. 0 bytes count as well.
    #[inline(always)]
    pub fn stop_bytes(self, bytes: u64) {
        let stopped = clock::now();
        self.span.record_bytes(self.started, stopped, bytes);
        core::mem::forget(self);
    }

    /// Forgets the event.
    #[inline(always)]
    pub fn discard(self) {
        core::mem::forget(self);
    }
}

impl Drop for Running<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.span.record(self.started, clock::now());
    }
}

impl RawSpan {
    /// Times in nanoseconds.
    pub(crate) fn in_nanoseconds(self, ticks_per_second: u64, grouping: u32) -> reader::Span {
        let nanoseconds = |ticks| clock::nanoseconds(ticks, ticks_per_second);
        let extremes = |min: Option<u64>, max: Option<u64>| {
            Some(reader::Extremes {
                min: min?,
                max: max?,
            })
        };
        let [events, ticks] = self.time;
        reader::Span {
            events,
            time: nanoseconds(ticks),
            times: extremes(
                self.shortest.map(nanoseconds),
                self.longest.map(nanoseconds),
            ),
            byte_events: self.bytes[0],
            bytes: self.bytes[1],
            byte_extremes: extremes(self.fewest_bytes, self.most_bytes),
            migrated: self.migrated,
            skipped: self.skipped,
            invalid: self.invalid,
            histogram: grouping.checked_sub(1).map(|grouping| reader::Buckets {
                grouping,
                sum: None,
                buckets: self.buckets,
            }),
        }
    }
}

impl crate::family::Metric for Span {
    fn labelled(&self, labels: &str) -> Self {
        Span {
            core: self.core.labelled(labels),
        }
    }

    fn register(&self) {
        self.core.register_alone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sample_is_the_shortest_and_the_longest() {
        // It has stopped before the span is registered.
        for _ in 0..3 {
            let span = Span::new("a_span_with_one_sample");
            span.start().stop_bytes(7);
            let read = span.read();
            assert_eq!((read.events, read.byte_events), (1, 1));
            let times = read.times.expect("a sample");
            assert_eq!((times.min, times.max), (read.time, read.time));
            assert_eq!(
                read.byte_extremes,
                Some(reader::Extremes { min: 7, max: 7 })
            );
        }
    }
}

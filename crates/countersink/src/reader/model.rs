//! What a reader finds: plain data.

use std::time::Duration;

/// What a region says of itself and of the program.
#[derive(Clone, Debug, PartialEq)]
pub struct Info {
    /// The process that made it, as it saw itself.
    pub pid: u32,
    /// Its effective user.
    pub uid: u32,
    /// When that process was started, in clock ticks since boot.
    pub start_time: u64,
    /// The inode of its PID namespace.
    pub pid_namespace: u64,
    /// The boot, as the kernel's `boot_id`.
    pub boot: [u8; 16],
    /// The program.
    pub program: String,
    /// Version of the library that wrote it: major, minor, patch.
    pub library: [u32; 3],
    /// What counts.
    pub mechanism: Mechanism,
    /// The mechanism and why, as a sentence.
    pub mechanism_reason: String,
    /// Why the region is not where its program wanted it, a phrase; empty if it is.
    pub hindrance: String,
    /// Memory that vanishes, or a file.
    pub kind: Kind,
    /// CPU lanes.
    pub cpus: u32,
    /// Entries there is room for.
    pub entries: u32,
    /// Segments there is room for.
    pub segments: u32,
    /// What spans are measured with.
    pub clock: Clock,
    /// When the region was made, since 1970.
    pub created: Duration,
}

/// What writes the CPU lanes of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mechanism {
    /// Restartable sequences.
    Rseq,
    /// Locked operations on the lanes of CPUs.
    LockedLanes,
    /// Locked operations on the lanes of threads.
    ThreadLanes,
}

/// What a region lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A memfd.
    Memfd,
    /// A file in a directory.
    File,
    /// Memory that no other process sees.
    Private,
}

/// What spans are measured with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    /// Which clock.
    pub kind: ClockKind,
    /// Ticks per second; 0 where no span was ever registered.
    pub ticks_per_second: u64,
    /// Ticks at some moment, and `CLOCK_MONOTONIC` then.
    pub ticks: u64,
    /// `CLOCK_MONOTONIC` at that moment, in nanoseconds.
    pub nanoseconds: u64,
}

impl Clock {
    /// Ticks in nanoseconds, rounded.
    pub fn nanoseconds_of(&self, ticks: u64) -> u64 {
        if self.ticks_per_second == 0 {
            return 0;
        }
        crate::clock::nanoseconds(ticks, self.ticks_per_second)
    }
}

/// Which clock spans are measured with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClockKind {
    /// The cycle counter, the same on all CPUs.
    Cycles,
    /// The cycle counter, perhaps not the same on all CPUs.
    CyclesOfEachCpu,
    /// The monotonic clock.
    Monotonic,
}

/// What all metrics held at about one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// `CLOCK_MONOTONIC` when it was taken.
    pub taken: Duration,
    /// The clock of spans, as it was known then: histograms of times are in its ticks.
    pub clock: Clock,
    /// The metrics, by name and labels; equal entries are added up.
    pub metrics: Vec<Metric>,
    /// Metrics that the program wanted and did not get.
    pub refusals: Vec<Refusal>,
    /// Refusals in all, those without a record too.
    pub refused: u64,
    /// Resets so far, and the time of the last one, since 1970.
    pub resets: u64,
    /// When the last reset was, since 1970; zero if there was none.
    pub last_reset: Duration,
    /// What could not be right or could not be read, a sentence each. Metrics are missing then, and
    /// those that are there are right.
    pub problems: Vec<String>,
}

/// A metric that counts privately or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Its name, or the beginning of it.
    pub name: String,
    /// Why, as a phrase.
    pub reason: String,
    /// How often.
    pub times: u64,
}

/// Label names and values.
pub type Labels = Vec<(String, String)>;

/// A metric with its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// The name, with the group's.
    pub name: String,
    /// The group it was declared in.
    pub group: Option<String>,
    /// Its labels.
    pub labels: Labels,
    /// What it counts.
    pub help: String,
    /// In what unit: `""`, `"bytes"`, `"nanoseconds"`, or `"ticks"` of the region's clock. Spans say
    /// `"nanoseconds"`, which their times are in here.
    pub unit: &'static str,
    /// The number of its entry; the first one's where equal entries were added up.
    pub entry: u32,
    /// Which use of its entry this is: another one is another metric.
    pub generation: u32,
    /// It kept being reset while it was read, so this is not a value that it had.
    pub torn: bool,
    /// The value.
    pub value: Value,
    /// The same by lane, without what resets have taken off sums: also what was counted before the
    /// last reset, and what another metric counted whose words these were. Lanes with nothing are left out.
    pub lanes: Vec<(Per, Value)>,
}

/// Whose lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Per {
    /// A CPU's.
    Cpu(u32),
    /// That of threads that could not use a CPU's.
    Shared,
}

/// What a metric holds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// A counter.
    Counter(u64),
    /// A gauge.
    Gauge(Gauge),
    /// A span.
    Span(Box<Span>),
    /// A histogram.
    Histogram(Buckets),
    /// A batch counter.
    Batch(Bounded),
    /// A tree counter.
    Tree(Bounded),
}

/// A counter that tells how much it has about. Of a lane: what it has counted and published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounded {
    /// The sum over all lanes; of what was added or subtracted while it was read, some may be in it and some not.
    pub sum: i64,
    /// What it can be read as without looking at the lanes.
    pub estimate: i64,
    /// The farthest that the sum may be from it; `None` where there is no telling.
    pub bound: Option<u64>,
}

/// The bounds of a gauge; equal where nobody counted down meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauge {
    /// At least this.
    pub low: i64,
    /// At most this.
    pub high: i64,
}

/// What a span measured.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Span {
    /// Events.
    pub events: u64,
    /// Events thrown away because the CPU changed.
    pub skipped: u64,
    /// Events counted although the CPU changed.
    pub migrated: u64,
    /// Events thrown away because the time was negative or absurd.
    pub invalid: u64,
    /// Their time in nanoseconds.
    pub time: u64,
    /// Shortest and longest, in nanoseconds; `None` without events.
    pub times: Option<Extremes>,
    /// Events with bytes.
    pub byte_events: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Fewest and most; `None` without such events.
    pub byte_extremes: Option<Extremes>,
    /// The times, in ticks of the clock, where there is a histogram.
    pub histogram: Option<Buckets>,
}

/// The smallest and the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extremes {
    /// The smallest.
    pub min: u64,
    /// The largest.
    pub max: u64,
}

/// A histogram's buckets that are not empty.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Buckets {
    /// The grouping power: the error is at most 1 in 2 to its power.
    pub grouping: u32,
    /// The sum of all values, wrapping, if it is kept.
    pub sum: Option<u64>,
    /// Number and how many values; ascending.
    pub buckets: Vec<(usize, u64)>,
}

impl Buckets {
    /// How many values.
    pub fn count(&self) -> u64 {
        self.buckets
            .iter()
            .fold(0, |sum, bucket| sum.wrapping_add(bucket.1))
    }
}

//! Seed `003_fd47a698a9c362e5` (Wang Yalin and Kirill Shutemov, February 2015): whether to test a bit before setting it.
//!
//! A store makes a cache line this CPU's alone, also where it stores what is there already. The seed asks whether a test before it
//! is worth its price, and measures one thread over memory that misses the cache and over memory that hits it, then a
//! writer and a reader on two CPUs. Its programs do not do what they say:
//! - their loops touch 16 MiB and 32 KiB, not 1 GiB and 2 MiB;
//! - the value changes with each pass, so a test never finds it there;
//! - `sched_setaffinity(-1)` fails unnoticed, so nothing is pinned, and the two threads do not start together.
//!
//! Here are the same set-ups without that: values that change and values that do not, sizes that are published and those that this
//! machine's caches ask for, threads pinned behind a barrier, memory populated and locked. And the question that the thread asks and nobody
//! answers there: **from which share of bits that are set already does a test pay**, for the writer and for a reader
//! beside it? [`published`] runs the literal programs.
//!
//! A sample is a number of words over the time that they took; samples alternate plain, checked, checked, plain.

mod caches;
mod memory;
pub mod published;
mod sampling;

use countersink_harness::cpus::Topology;
use countersink_harness::result::{ModeName, PointResult, UNIT};
use countersink_harness::stats::Summary;
use std::time::Duration;

pub use caches::{Cache, caches};
pub use sampling::clock_ghz;

use memory::Words;
use sampling::{Look, Pass, Sample, sample};

/// The variants.
pub const PLAIN: &str = "plain";
/// The other one.
pub const CHECKED: &str = "checked";
/// The operation of whoever writes.
pub const WRITE: &str = "write";
/// The operation of whoever reads beside it.
pub const READ: &str = "read";

/// Runs of each variant, as the seed has them.
const RUNS: usize = 10;
const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;
/// What the seed's loops touch, by its reckoning and the caches' of then: memory that hits, and memory that misses.
const PUBLISHED_ALONE: [usize; 2] = [32 * KIB, 16 * MIB];
/// The memory of writer and reader.
const PUBLISHED_TOGETHER: [usize; 2] = [MIB, 2 * MIB];
/// More than this is not allocated, however large the last cache.
const MOST: usize = 256 * MIB;
/// The shares of the sweep, in percent.
pub const SHARES: [u32; 13] = [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 100];

/// What is written: something else each time, or always the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Every value is new.
    Change,
    /// Every value is there already.
    Stay,
    /// So many of a hundred cache lines stay as they are.
    Share(u32),
}

impl Values {
    fn label(self) -> String {
        match self {
            Values::Change => "values change".to_owned(),
            Values::Stay => "values stay".to_owned(),
            Values::Share(percent) => format!("{percent} % stay"),
        }
    }
}

/// One set-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetUp {
    /// How much memory.
    pub bytes: usize,
    /// Why that much.
    pub why: String,
    /// Whether somebody reads beside the writer.
    pub together: bool,
    /// What is written.
    pub values: Values,
}

impl SetUp {
    /// The pattern of its points.
    pub fn pattern(&self) -> String {
        let beside = if self.together { ", with a reader" } else { "" };
        format!("{}{beside}, {}", size(self.bytes), self.values.label())
    }
}

/// A number of bytes, in the largest unit that it is a whole number of.
pub fn size(bytes: usize) -> String {
    match bytes {
        bytes if bytes.is_multiple_of(MIB) => format!("{} MiB", bytes / MIB),
        bytes => format!("{} KiB", bytes.div_ceil(KIB)),
    }
}

/// What was measured.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The set-ups of the seed, and of this machine.
    pub set_ups: Vec<SetUp>,
    /// The sweeps: alone on memory that hits, alone on memory that misses, with a reader.
    pub sweeps: Vec<Vec<SetUp>>,
    /// One for each set-up, variant and role.
    pub points: Vec<PointResult>,
    /// What was not as it should be: memory that could not be locked, a second CPU that is not there.
    pub notes: Vec<String>,
}

/// Measures everything, with samples of this length; tells which set-up is next.
pub fn run(length: Duration, mut next: impl FnMut(usize, usize, &str)) -> Measured {
    let topology = Topology::detect();
    let two = topology.cpus().len() >= 2;
    let mut measured = Measured {
        set_ups: set_ups(two),
        sweeps: sweeps(two),
        ..Measured::default()
    };
    if !two {
        measured
            .notes
            .push("one CPU only may be used, so nobody reads beside the writer".to_owned());
    }
    let all: Vec<SetUp> = measured
        .set_ups
        .iter()
        .chain(measured.sweeps.iter().flatten())
        .cloned()
        .collect();
    for (at, set_up) in all.iter().enumerate() {
        next(at, all.len(), &set_up.pattern());
        measure(set_up, length, &topology, &mut measured);
    }
    measured
}

fn set_ups(two: bool) -> Vec<SetUp> {
    let mut set_ups = Vec::new();
    let mut alone: Vec<(usize, String)> = PUBLISHED_ALONE
        .iter()
        .map(|bytes| (*bytes, "published".to_owned()))
        .collect();
    for (bytes, why) in sizes_of_this_machine() {
        if alone.iter().all(|(known, _)| *known != bytes) {
            alone.push((bytes, why));
        }
    }
    alone.sort();
    let both = [Values::Change, Values::Stay];
    for (bytes, why) in alone {
        set_ups.extend(both.map(|values| SetUp {
            bytes,
            why: why.clone(),
            together: false,
            values,
        }));
    }
    for bytes in PUBLISHED_TOGETHER.into_iter().filter(|_| two) {
        set_ups.extend(both.map(|values| SetUp {
            bytes,
            why: "published".to_owned(),
            together: true,
            values,
        }));
    }
    set_ups
}

/// Memory that surely hits and surely misses here.
fn sizes_of_this_machine() -> Vec<(usize, String)> {
    let caches = caches();
    let mut sizes = Vec::new();
    if let Some(first) = caches.iter().find(|cache| cache.level == 1) {
        sizes.push((first.bytes / 2, "half of the first cache".to_owned()));
    }
    if let Some(last) = caches.iter().max_by_key(|cache| cache.level) {
        let bytes = (4 * last.bytes).min(MOST);
        sizes.push((bytes, format!("the last cache has {}", size(last.bytes))));
    }
    sizes
}

fn sweeps(two: bool) -> Vec<Vec<SetUp>> {
    let of_machine = sizes_of_this_machine();
    let [hits, misses] = PUBLISHED_ALONE;
    let misses = of_machine
        .iter()
        .map(|(bytes, _)| *bytes)
        .max()
        .unwrap_or(0)
        .max(misses);
    let mut kinds = vec![(hits, false), (misses, false)];
    if two {
        kinds.push((PUBLISHED_TOGETHER[0], true));
    }
    let sweep = |(bytes, together): (usize, bool)| {
        let share = |percent| SetUp {
            bytes,
            why: "swept".to_owned(),
            together,
            values: Values::Share(percent),
        };
        SHARES.map(share).to_vec()
    };
    kinds.into_iter().map(sweep).collect()
}

/// What is taken from a sample.
type Figure = fn(&Sample) -> f64;

/// One set-up, in runs that alternate.
fn measure(set_up: &SetUp, length: Duration, topology: &Topology, measured: &mut Measured) {
    let words = match Words::new(set_up.bytes) {
        Ok(words) => words,
        Err(reason) => {
            return measured
                .notes
                .push(format!("{}: {reason}", set_up.pattern()));
        }
    };
    if let Some(note) = words.note()
        && !measured.notes.contains(&note)
    {
        measured.notes.push(note);
    }
    let mut pass = Pass::new(set_up.values);
    let mut look = Look {
        words: &words,
        length,
        topology,
        together: set_up.together,
    };
    // A pass that brings the values about, and warms up.
    for checked in [false, true] {
        sample(&mut look, &mut pass, checked);
    }
    let mut samples: [Vec<Sample>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..RUNS / 2 {
        for checked in [false, true, true, false] {
            samples[usize::from(checked)].push(sample(&mut look, &mut pass, checked));
        }
    }
    for (name, samples) in [PLAIN, CHECKED].into_iter().zip(&samples) {
        let roles: &[(&str, Figure)] = match set_up.together {
            true => &[
                (WRITE, |sample| sample.write_ns),
                (READ, |sample| sample.read_ns),
            ],
            false => &[(WRITE, |sample| sample.write_ns)],
        };
        for (op, of) in roles {
            measured
                .points
                .extend(point(set_up, (name, op), samples, *of));
        }
    }
}

fn point(
    set_up: &SetUp,
    (variant, op): (&str, &str),
    samples: &[Sample],
    of: Figure,
) -> Option<PointResult> {
    let values: Vec<f64> = samples.iter().map(of).collect();
    let cpus: Vec<usize> = samples
        .first()
        .map_or(Vec::new(), |sample| sample.cpus.clone());
    Some(PointResult {
        variant: variant.to_owned(),
        op: op.to_owned(),
        pattern: set_up.pattern(),
        threads: if set_up.together { 2 } else { 1 },
        unit: UNIT.to_owned(),
        mode: ModeName::Timed,
        iterations: None,
        pinned: cpus.len() == if set_up.together { 2 } else { 1 },
        oversubscribed: false,
        shared_cores: None,
        cpus,
        wall: Summary::of(&values)?,
        thread: None,
        fairness: 1.0,
        fairness_samples: vec![1.0; values.len()],
        samples: values,
        thread_samples: Vec::new(),
    })
}

/// A ratio at one share of the sweep, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct At {
    /// In percent.
    pub share: u32,
    /// The ratio of the medians.
    pub ratio: f64,
    /// Its interval.
    pub ci95: [f64; 2],
}

/// From where on looking pays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BreakEven {
    /// At every share.
    Always,
    /// Not even where everything is set.
    Never,
    /// About from this share on: it surely costs at the second, and surely pays from the third on.
    From(f64, u32, u32),
    /// It surely pays from this share on; below, it cannot be told.
    AtLeast(u32),
    /// Nothing can be told.
    Unknown,
}

/// From which share on the ratio is below 1, by its intervals; between those, by straight lines between the medians.
pub fn break_even(sweep: &[At]) -> BreakEven {
    let pays = sweep.iter().rev().take_while(|at| at.ci95[1] < 1.0).count();
    let costs = sweep.iter().rposition(|at| at.ci95[0] > 1.0);
    let first = sweep.len() - pays;
    match (costs, pays) {
        _ if sweep.is_empty() => BreakEven::Unknown,
        (_, pays) if pays == sweep.len() => BreakEven::Always,
        (Some(last), 0) if last + 1 == sweep.len() => BreakEven::Never,
        (_, 0) => BreakEven::Unknown,
        (None, _) => BreakEven::AtLeast(sweep[first].share),
        (Some(last), _) => {
            let between = &sweep[last..=first];
            let crossing = between.windows(2).find(|pair| pair[1].ratio < 1.0);
            let share = crossing.map_or(f64::from(sweep[first].share), |pair| {
                let [from, to] = [pair[0], pair[1]];
                let part = (from.ratio - 1.0) / (from.ratio - to.ratio);
                f64::from(from.share) + f64::from(to.share - from.share) * part
            });
            BreakEven::From(share, sweep[last].share, sweep[first].share)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(ratios: &[(u32, f64)], reach: f64) -> Vec<At> {
        let at = |(share, ratio): &(u32, f64)| At {
            share: *share,
            ratio: *ratio,
            ci95: [ratio - reach, ratio + reach],
        };
        ratios.iter().map(at).collect()
    }

    #[test]
    fn break_even_lies_between_what_is_sure() {
        let of = |ratios: &[(u32, f64)], reach| break_even(&sweep(ratios, reach));
        let falls = [(0, 2.0), (50, 1.5), (100, 0.5)];
        assert_eq!(of(&falls, 0.1), BreakEven::From(75.0, 50, 100));
        assert_eq!(of(&falls, 0.6), BreakEven::Unknown);
        assert_eq!(of(&[(0, 0.9), (100, 0.5)], 0.01), BreakEven::Always);
        assert_eq!(of(&[(0, 1.5), (100, 1.1)], 0.01), BreakEven::Never);
        assert_eq!(
            of(&[(0, 1.0), (50, 0.9), (100, 0.5)], 0.01),
            BreakEven::AtLeast(50)
        );
        // What is below by chance, and above again, does not count.
        let odd = [(0, 0.9), (50, 1.5), (100, 0.5)];
        assert_eq!(of(&odd, 0.01), BreakEven::From(75.0, 50, 100));
        assert_eq!(of(&[], 0.0), BreakEven::Unknown);
    }

    #[test]
    fn sizes_are_told_in_whole_units() {
        assert_eq!(size(32 * KIB), "32 KiB");
        assert_eq!(size(16 * MIB), "16 MiB");
        assert_eq!(size(1536 * KIB), "1536 KiB");
    }
}

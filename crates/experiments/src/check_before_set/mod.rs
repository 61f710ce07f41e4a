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
use countersink_harness::progress::Progress;
use countersink_harness::result::{ExperimentResult, Noise, PointResult};
use countersink_harness::schedule::{self, Plan};

pub use caches::{Cache, caches};

use memory::Memory;
use sampling::{Look, Pass, Sample, sample};

/// The variants.
pub const PLAIN: &str = "plain";
/// The other one.
pub const CHECKED: &str = "checked";
/// The operation of whoever writes.
pub const WRITE: &str = "write";
/// The operation of whoever reads beside it.
pub const READ: &str = "read";

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
    fn threads(&self) -> usize {
        if self.together { 2 } else { 1 }
    }

    /// The set-up of a pattern; but why there is as much memory, no pattern tells.
    fn parse(pattern: &str) -> Option<SetUp> {
        let (bytes, rest) = pattern.split_once(", ")?;
        let (count, unit) = bytes.split_once(' ')?;
        let unit = match unit {
            "KiB" => KIB,
            "MiB" => MIB,
            _ => return None,
        };
        let bytes = count.parse::<usize>().ok()?.checked_mul(unit)?;
        let (together, values) = match rest.strip_prefix("with a reader, ") {
            Some(values) => (true, values),
            None => (false, rest),
        };
        let values = match values {
            "values change" => Values::Change,
            "values stay" => Values::Stay,
            share => Values::Share(share.strip_suffix(" % stay")?.parse().ok()?),
        };
        let published = match together {
            true => PUBLISHED_TOGETHER,
            false => PUBLISHED_ALONE,
        };
        let why = match values {
            Values::Share(_) => "swept",
            _ if published.contains(&bytes) => "published",
            _ => "by this machine's caches",
        };
        Some(SetUp {
            bytes,
            why: why.to_owned(),
            together,
            values,
        })
    }

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
#[derive(Clone, Debug)]
pub struct Measured {
    /// The set-ups of the seed, and of this machine.
    pub set_ups: Vec<SetUp>,
    /// The sweeps: alone on memory that hits, alone on memory that misses, with a reader.
    pub sweeps: Vec<Vec<SetUp>>,
    /// One point for each set-up, variant and role.
    pub result: ExperimentResult,
    /// What was not as it should be: memory that could not be locked, a second CPU that is not there.
    pub notes: Vec<String>,
}

impl Measured {
    /// What a saved result is of: the set-ups are in the patterns of its points.
    pub fn of(result: ExperimentResult) -> Measured {
        let mut all: Vec<SetUp> = Vec::new();
        for found in result
            .points
            .iter()
            .filter_map(|point| SetUp::parse(&point.pattern))
        {
            if !all.contains(&found) {
                all.push(found);
            }
        }
        let is_swept = |set_up: &SetUp| matches!(set_up.values, Values::Share(_));
        let (swept, set_ups): (Vec<SetUp>, Vec<SetUp>) = all.into_iter().partition(is_swept);
        let mut sweeps: Vec<Vec<SetUp>> = Vec::new();
        for set_up in swept {
            let is_of = |sweep: &&mut Vec<SetUp>| {
                sweep.first().is_some_and(|first| {
                    first.bytes == set_up.bytes && first.together == set_up.together
                })
            };
            match sweeps.iter_mut().find(is_of) {
                Some(sweep) => sweep.push(set_up),
                None => sweeps.push(vec![set_up]),
            }
        }
        Measured {
            set_ups,
            sweeps,
            result,
            notes: Vec::new(),
        }
    }
}

/// The experiment's name.
pub const NAME: &str = "check-before-set";

/// Measures everything by a plan, but what was measured before.
pub fn run(plan: &Plan, progress: &mut dyn Progress, begun: Option<&ExperimentResult>) -> Measured {
    let topology = Topology::detect();
    let two = topology.cpus().len() >= 2;
    let mut measured = set_ups_of_this_machine();
    if let Some(begun) = begun {
        measured.result.points.clone_from(&begun.points);
        measured.result.noise.clone_from(&begun.noise);
    }
    measured.result.plan = Some(plan.into());
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
    let mut memory = Memory::default();
    for (at, set_up) in all.iter().enumerate() {
        let pattern = set_up.pattern();
        if measured
            .result
            .points
            .iter()
            .any(|point| point.pattern == pattern)
        {
            continue;
        }
        progress.at(at, all.len(), &pattern);
        measure(
            set_up,
            plan,
            &topology,
            &mut memory,
            progress,
            &mut measured,
        );
        if progress.is_stopped() {
            measured.result.partial = true;
            break;
        }
    }
    measured
}

/// What is measured here, and nothing measured yet.
fn set_ups_of_this_machine() -> Measured {
    let two = Topology::detect().cpus().len() >= 2;
    Measured {
        set_ups: set_ups(two),
        sweeps: sweeps(two),
        result: ExperimentResult::new(NAME),
        notes: Vec::new(),
    }
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

/// What a slot of a round measures: plain, checked, and plain once more, which shows how far a way is from itself.
const SLOTS: [bool; 3] = [false, true, false];

/// One set-up, in runs that alternate. If it is ended meanwhile, nothing is added.
fn measure(
    set_up: &SetUp,
    plan: &Plan,
    topology: &Topology,
    memory: &mut Memory,
    progress: &mut dyn Progress,
    measured: &mut Measured,
) {
    let words = match memory.of(set_up.bytes) {
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
        words,
        length: plan.sample(),
        topology,
        together: set_up.together,
    };
    // A pass that brings the values about, and warms up.
    for checked in [false, true] {
        sample(&mut look, &mut pass, checked);
    }
    // Sweeps are many and of one kind, and what is noise is known from the others.
    let slots = match set_up.values {
        Values::Share(_) => 2,
        _ => SLOTS.len(),
    };
    let mut gathered: [Gathered; 3] = Default::default();
    for slot in schedule::sequence(slots, plan.rounds()) {
        if progress.is_stopped() {
            return;
        }
        gathered[slot].take(plan.repeats(), || sample(&mut look, &mut pass, SLOTS[slot]));
    }
    add(set_up, &gathered, &mut measured.result);
}

/// The samples of one slot.
#[derive(Debug, Default)]
struct Gathered {
    samples: Vec<Sample>,
    repeated: usize,
}

impl Gathered {
    /// Takes a sample, again if it was disturbed, unless too many were.
    fn take(&mut self, most: usize, mut sample: impl FnMut() -> Sample) {
        let mut found = sample();
        while !found.surroundings.disturbed.is_empty() && self.repeated < most {
            self.repeated += 1;
            found = sample();
        }
        self.samples.push(found);
    }
}

/// Adds what was measured of a set-up.
fn add(set_up: &SetUp, gathered: &[Gathered; 3], result: &mut ExperimentResult) {
    let roles: &[(&str, Figure)] = match set_up.together {
        true => &[
            (WRITE, |sample| sample.write_ns),
            (READ, |sample| sample.read_ns),
        ],
        false => &[(WRITE, |sample| sample.write_ns)],
    };
    for (op, of) in roles {
        for (name, gathered) in [PLAIN, CHECKED].into_iter().zip(gathered) {
            result
                .points
                .extend(point(set_up, (name, op), gathered, *of));
        }
        let [.., twin] = gathered;
        if !twin.samples.is_empty() {
            result.noise.push(Noise {
                variant: PLAIN.to_owned(),
                op: (*op).to_owned(),
                pattern: set_up.pattern(),
                threads: set_up.threads(),
                processes: 1,
                samples: twin.samples.iter().map(of).collect(),
            });
        }
    }
}

fn point(
    set_up: &SetUp,
    (variant, op): (&str, &str),
    gathered: &Gathered,
    of: Figure,
) -> Option<PointResult> {
    let samples = &gathered.samples;
    let cpus = samples.first().map_or(&[][..], |sample| &sample.cpus);
    let threads = set_up.threads();
    let values = samples.iter().map(of).collect();
    Some(PointResult {
        pinned: cpus.len() == threads,
        cpus: cpus.to_vec(),
        repeated: gathered.repeated,
        surroundings: samples
            .iter()
            .map(|sample| sample.surroundings.clone())
            .collect(),
        ..PointResult::of(variant, (op, &set_up.pattern(), threads), values)?
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
    fn set_ups_are_in_their_patterns() {
        let set_up = |bytes, together, values| SetUp {
            bytes,
            why: String::new(),
            together,
            values,
        };
        for (bytes, together, values) in [
            (48 * KIB, false, Values::Change),
            (16 * MIB, true, Values::Stay),
            (3 * MIB, true, Values::Share(95)),
        ] {
            let pattern = set_up(bytes, together, values).pattern();
            let found = SetUp::parse(&pattern).expect("a set-up");
            assert_eq!(
                set_up(found.bytes, found.together, found.values),
                set_up(bytes, together, values)
            );
        }
        for other in [
            "",
            "32 KiB",
            "x KiB, values stay",
            "1 GiB, values stay",
            "1 KiB, 5 stay",
            "18446744073709551615 MiB, values stay",
        ] {
            assert_eq!(SetUp::parse(other), None, "{other}");
        }
    }

    #[test]
    fn sizes_are_told_in_whole_units() {
        assert_eq!(size(32 * KIB), "32 KiB");
        assert_eq!(size(16 * MIB), "16 MiB");
        assert_eq!(size(1536 * KIB), "1536 KiB");
    }
}

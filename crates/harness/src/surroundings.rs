//! What else happened while a sample was taken, and when that is too much.
//!
//! Each thread looks at what the kernel counts of it just before and after the timed part, and times a chain of additions that each need
//! the one before ([`clock_ghz`]): where that takes longer than before, the CPU's clock has changed or somebody shares the core.
//! A sample is *disturbed* if any of these cost it more than 1 % of its time (and more than 5 µs):
//! - **steal**: the hypervisor or interrupts had the CPU, as `/proc/stat` says in steps of 10 ms, and as the difference of a thread's
//!   elapsed time, CPU time and waiting says where it never slept;
//! - **preempted**: a thread was ready to run, and others ran. Not counted where there are more threads than CPUs: there it is what is measured;
//! - **moved**: a thread was moved to another CPU, which costs caches, so once is too much;
//! - **faults**: page faults, at a µs each;
//! - **clock**: the chain took more than 5 % longer or shorter after the sample than before.

use std::collections::BTreeSet;
use std::hint::black_box;

use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::machine;
use crate::os;
use crate::runner::{Sample, ThreadSample};

/// The share of a sample that may be lost.
const TOLERATED_SHARE: f64 = 0.01;
/// What may be lost of the shortest sample: reading the clocks takes part of it.
const TOLERATED_NS: f64 = 5_000.0;
/// How far the clock may drift.
const TOLERATED_DRIFT: f64 = 0.05;
/// What a page fault takes, about.
const FAULT_NS: f64 = 1_000.0;

/// Why a sample is not to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Disturbance {
    /// The hypervisor or interrupts had the CPU.
    Steal,
    /// Other threads had the CPU.
    Preempted,
    /// A thread was moved to another CPU.
    Moved,
    /// Page faults.
    Faults,
    /// The CPU's clock changed.
    Clock,
    /// Something that a later version knows.
    #[serde(other)]
    Other,
}

impl Disturbance {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Disturbance::Steal => "steal",
            Disturbance::Preempted => "preempted",
            Disturbance::Moved => "moved",
            Disturbance::Faults => "faults",
            Disturbance::Clock => "clock",
            Disturbance::Other => "other",
        }
    }
}

/// What happened during a sample, all threads together. `None`: the system does not tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Surroundings {
    /// What the hypervisor took of the sample's CPUs, in steps of 10 ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steal_ns: Option<u64>,
    /// How long threads were ready to run and did not: the pressure on their run queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_ns: Option<u64>,
    /// What threads that never slept had neither as CPU time nor waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_ns: Option<u64>,
    /// Switches that threads did not ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub involuntary: Option<u64>,
    /// Switches of threads that went to sleep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voluntary: Option<u64>,
    /// How often threads were moved to another CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migrations: Option<u64>,
    /// Page faults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faults: Option<u64>,
    /// The clock by [`clock_ghz`], before and after, of the thread where it drifted most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_ghz: Option<[f64; 2]>,
    /// What there was too much of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disturbed: Vec<Disturbance>,
}

/// What one thread met in the timed part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Met {
    /// Ready to run, and not running.
    pub waited_ns: Option<u64>,
    /// Switches that it did not ask for.
    pub involuntary: Option<u64>,
    /// Switches as it went to sleep.
    pub voluntary: Option<u64>,
    /// How often it was moved.
    pub migrations: Option<u64>,
    /// Page faults.
    pub faults: Option<u64>,
    /// The clock before and after.
    pub clock_ghz: Option<[f64; 2]>,
}

/// What a thread did and met in its timed part, and when.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// When it began, by the clock that it was given.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// What it did.
    pub thread: ThreadSample,
}

/// What is known of a thread before the timed part. For those that time threads of their own; [`crate::threads`] does it by itself.
#[derive(Debug)]
pub struct Watch {
    usage: Option<os::Usage>,
    waited_ns: Option<u64>,
    pinned: Option<usize>,
    migrations: Option<u64>,
    cpu: Option<usize>,
    ghz: f64,
}

/// How often the thread was moved. The kernel is slow to say it, and where one that is pinned runs tells the same.
fn migrations(pinned: Option<usize>) -> Option<u64> {
    match pinned {
        Some(_) => None,
        None => os::thread_migrations(),
    }
}

impl Watch {
    /// Begins to watch the calling thread, which is pinned to this CPU, if to any: some tens of µs, so not in the timed part.
    pub fn begin(clock: &dyn Clock, pinned: Option<usize>) -> Watch {
        let ghz = clock_ghz(clock);
        Watch {
            pinned,
            migrations: migrations(pinned),
            waited_ns: os::thread_waited_ns(),
            cpu: os::current_cpu(),
            usage: os::thread_usage(),
            ghz,
        }
    }

    /// Times what the thread does, which says how many operations that were and is told when it began; then ends.
    pub fn time(self, clock: &dyn Clock, work: impl FnOnce(u64) -> u64) -> Timing {
        let cpu = self.pinned;
        let cpu_before = clock.thread_cpu_ns();
        let start_ns = clock.now_ns();
        let ops = work(start_ns);
        let end_ns = clock.now_ns();
        let cpu_after = clock.thread_cpu_ns();
        let met = self.end(clock);
        let cpu_ns = cpu_after.zip(cpu_before);
        Timing {
            start_ns,
            end_ns,
            thread: ThreadSample {
                ops,
                elapsed_ns: end_ns.saturating_sub(start_ns),
                cpu_ns: cpu_ns.map(|(after, before)| after.saturating_sub(before)),
                cpu,
                met,
                ..ThreadSample::default()
            },
        }
    }

    /// Ends it, on the same thread.
    fn end(self, clock: &dyn Clock) -> Met {
        let usage = os::thread_usage();
        let cpu = os::current_cpu();
        let waited_ns = os::thread_waited_ns();
        let migrations = migrations(self.pinned);
        let since = |before: Option<u64>, after: Option<u64>| Some(after?.saturating_sub(before?));
        let of = |count: fn(&os::Usage) -> u64| {
            since(self.usage.as_ref().map(count), usage.as_ref().map(count))
        };
        let was_moved = self
            .cpu
            .zip(cpu)
            .map(|(before, after)| u64::from(before != after));
        let ghz = clock_ghz(clock);
        let is_known = self.ghz.is_finite() && ghz.is_finite() && self.ghz > 0.0;
        Met {
            waited_ns: since(self.waited_ns, waited_ns),
            involuntary: of(|usage| usage.involuntary),
            voluntary: of(|usage| usage.voluntary),
            migrations: since(self.migrations, migrations).max(was_moved),
            faults: of(|usage| usage.faults),
            clock_ghz: is_known.then_some([self.ghz, ghz]),
        }
    }
}

/// What the hypervisor has taken of some CPUs so far.
#[derive(Debug)]
pub struct Steal {
    cpus: BTreeSet<usize>,
    before: Option<u64>,
}

impl Steal {
    /// Begins to watch. Where there is no hypervisor, nobody asks.
    pub fn begin(cpus: &[usize]) -> Steal {
        let cpus: BTreeSet<usize> = cpus.iter().copied().collect();
        let before = machine::is_virtual().then(|| os::steal_ns(&cpus)).flatten();
        Steal { cpus, before }
    }

    /// What it took since, in ns.
    pub fn end(self) -> Option<u64> {
        let before = self.before?;
        Some(os::steal_ns(&self.cpus)?.saturating_sub(before))
    }
}

/// The clock rate of this CPU at the moment, by a chain of an exclusive or and an addition, each of which needs the one before and
/// takes a cycle on all that this was tried on. The fastest of three times, some µs each, so that an interruption does not count.
pub fn clock_ghz(clock: &dyn Clock) -> f64 {
    const STEPS: u64 = 8_000;
    const CYCLES: f64 = 2.0;
    let once = || {
        let start = clock.now_ns();
        let mut value = black_box(1_u64);
        for step in 0..STEPS {
            value = (value ^ step).wrapping_add(0x9e37_79b9_7f4a_7c15);
        }
        black_box(value);
        let elapsed = clock.now_ns().saturating_sub(start);
        CYCLES * STEPS as f64 / elapsed as f64
    };
    let ghz = (0..3).map(|_| once()).fold(0.0, f64::max);
    // To the MHz: the rest is noise.
    (ghz * 1e3).round() / 1e3
}

impl Surroundings {
    /// What a sample met, and whether that was too much.
    pub fn of(sample: &Sample) -> Surroundings {
        let sum = |of: fn(&Met) -> Option<u64>| -> Option<u64> {
            sample.threads.iter().map(|thread| of(&thread.met)).sum()
        };
        let drifts = sample
            .threads
            .iter()
            .filter_map(|thread| thread.met.clock_ghz);
        let mut found = Surroundings {
            steal_ns: sample.steal_ns,
            waited_ns: sum(|met| met.waited_ns),
            lost_ns: lost_ns(sample),
            involuntary: sum(|met| met.involuntary),
            voluntary: sum(|met| met.voluntary),
            migrations: sum(|met| met.migrations),
            faults: sum(|met| met.faults),
            clock_ghz: drifts.max_by(|one, other| drift(*one).total_cmp(&drift(*other))),
            disturbed: Vec::new(),
        };
        found.disturbed = found.judge(sample);
        found
    }

    fn judge(&self, sample: &Sample) -> Vec<Disturbance> {
        let most = (TOLERATED_SHARE * sample.elapsed_ns as f64).max(TOLERATED_NS);
        let is_much = |ns: Option<u64>| ns.is_some_and(|ns| ns as f64 > most);
        // One thread that waits makes those that wait for it wait.
        let mut waited = is_much(self.waited_ns);
        if self.waited_ns.is_none() {
            waited = self.involuntary > Some(0) && is_much(self.lost_ns);
        }
        let faults = self.faults.map(|faults| (faults as f64 * FAULT_NS) as u64);
        let found = [
            (
                Disturbance::Steal,
                is_much(self.steal_ns) || is_much(self.lost_ns),
            ),
            (Disturbance::Preempted, waited && !sample.oversubscribed),
            (
                Disturbance::Moved,
                self.migrations > Some(0) && sample.pinned(),
            ),
            (Disturbance::Faults, is_much(faults)),
            (
                Disturbance::Clock,
                self.clock_ghz
                    .is_some_and(|ghz| drift(ghz) > TOLERATED_DRIFT),
            ),
        ];
        let found = found.into_iter().filter(|(_, is_so)| *is_so);
        found.map(|(what, _)| what).collect()
    }
}

/// What threads had neither as CPU time nor waited for. Of a thread that slept nobody can say it.
fn lost_ns(sample: &Sample) -> Option<u64> {
    let mut lost = 0;
    for thread in &sample.threads {
        if thread.met.voluntary? > 0 {
            return None;
        }
        let had = thread.cpu_ns? + thread.met.waited_ns.unwrap_or(0);
        lost += thread.elapsed_ns.saturating_sub(had);
    }
    Some(lost)
}

fn drift([before, after]: [f64; 2]) -> f64 {
    (after / before).ln().abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{MockClock, RealClock};
    use crate::mock::even_sample;

    /// A sample of 1 ms by two threads, of which each had the CPU all the time.
    fn quiet() -> Sample {
        let mut sample = even_sample(2, 1000, 1_000_000);
        for thread in &mut sample.threads {
            thread.met = Met {
                waited_ns: Some(0),
                involuntary: Some(0),
                voluntary: Some(0),
                migrations: Some(0),
                faults: Some(0),
                clock_ghz: Some([3.0, 3.0]),
            };
        }
        sample.steal_ns = Some(0);
        sample
    }

    fn disturbed(change: impl FnOnce(&mut Sample)) -> Vec<Disturbance> {
        let mut sample = quiet();
        change(&mut sample);
        Surroundings::of(&sample).disturbed
    }

    #[test]
    fn each_disturbance_is_found_and_a_little_is_none() {
        assert_eq!(disturbed(|_| {}), []);
        assert_eq!(disturbed(|s| s.threads[1].met.waited_ns = Some(9_000)), []);
        let waited = |s: &mut Sample| {
            s.threads[1].met.waited_ns = Some(11_000);
            s.threads[1].cpu_ns = Some(989_000);
        };
        assert_eq!(disturbed(waited), [Disturbance::Preempted]);
        let steal = |s: &mut Sample| s.steal_ns = Some(10_000_000);
        assert_eq!(disturbed(steal), [Disturbance::Steal]);
        let lost = |s: &mut Sample| s.threads[0].cpu_ns = Some(980_000);
        assert_eq!(disturbed(lost), [Disturbance::Steal]);
        let moved = |s: &mut Sample| s.threads[0].met.migrations = Some(1);
        assert_eq!(disturbed(moved), [Disturbance::Moved]);
        assert_eq!(disturbed(|s| s.threads[0].met.faults = Some(10)), []);
        let faults = |s: &mut Sample| s.threads[0].met.faults = Some(11);
        assert_eq!(disturbed(faults), [Disturbance::Faults]);
        assert_eq!(
            disturbed(|s| s.threads[0].met.clock_ghz = Some([3.0, 3.1])),
            []
        );
        let clock = |s: &mut Sample| s.threads[0].met.clock_ghz = Some([3.0, 2.8]);
        assert_eq!(disturbed(clock), [Disturbance::Clock]);
    }

    #[test]
    fn what_is_measured_is_no_disturbance() {
        let crowded = |s: &mut Sample| {
            s.oversubscribed = true;
            s.threads[0].met.waited_ns = Some(500_000);
            s.threads[0].met.involuntary = Some(9);
            s.threads[0].cpu_ns = Some(500_000);
        };
        assert_eq!(disturbed(crowded), []);
        // A thread that sleeps in a lock has no CPU time, and nobody took it.
        let asleep = |s: &mut Sample| {
            s.threads[0].met.voluntary = Some(3);
            s.threads[0].cpu_ns = Some(100_000);
        };
        assert_eq!(disturbed(asleep), []);
        // Threads that are not pinned may move.
        let free = |s: &mut Sample| {
            s.threads[0].cpu = None;
            s.threads[0].met.migrations = Some(1);
        };
        assert_eq!(disturbed(free), []);
    }

    #[test]
    fn without_the_schedulers_statistics_a_switch_and_lost_time_tell() {
        let preempted = |s: &mut Sample| {
            for thread in &mut s.threads {
                thread.met.waited_ns = None;
            }
            s.threads[0].met.involuntary = Some(1);
            s.threads[0].cpu_ns = Some(900_000);
        };
        assert!(disturbed(preempted).contains(&Disturbance::Preempted));
    }

    #[test]
    fn what_the_system_does_not_tell_disturbs_nobody() {
        let sample = even_sample(1, 10, 1_000_000);
        let found = Surroundings::of(&sample);
        assert_eq!(found, Surroundings::default());
        assert_eq!(serde_json::to_string(&found).expect("JSON"), "{}");
        let later: Surroundings =
            serde_json::from_str(r#"{"disturbed":["clock","ghosts"]}"#).expect("read");
        assert_eq!(later.disturbed, [Disturbance::Clock, Disturbance::Other]);
    }

    #[test]
    fn the_clock_rate_is_that_of_the_chain() {
        // 16,000 cycles in 4,000 ns.
        assert_eq!(clock_ghz(&MockClock::new(4_000)), 4.0);
        let ghz = clock_ghz(&RealClock::new());
        assert!((0.01..100.0).contains(&ghz), "{ghz} GHz");
    }

    #[test]
    fn a_watch_sees_what_a_thread_does() {
        let clock = RealClock::new();
        let watch = Watch::begin(&clock, None);
        let memory = vec![1_u8; 4 << 20];
        black_box(&memory);
        std::thread::yield_now();
        std::thread::sleep(std::time::Duration::from_millis(1));
        let met = watch.end(&clock);
        if os::thread_usage().is_some() {
            assert!(met.voluntary > Some(0) && met.faults > Some(0), "{met:?}");
        }
    }
}

//! The form in which results are kept: JSON, schema [`SCHEMA`].
//!
//! Readers ignore fields that they do not know, so fields may be added under the same schema.

use std::collections::HashMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::save::{SaveError, save};
use crate::schedule::{Plan, SAMPLES_PER_ROUND};
use crate::stats::{self, Ratio, Summary};
use crate::surroundings::Surroundings;

/// The name of the form.
pub const SCHEMA: &str = "countersink-results/1";

/// The unit of all times.
pub const UNIT: &str = "ns/op";

/// What a run found, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`SCHEMA`].
    pub schema: String,
    /// The machine, and the conditions of the run.
    pub machine: Machine,
    /// What the run took, with all its processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<Times>,
    /// The experiments, in the order in which they were run.
    pub experiments: Vec<ExperimentResult>,
}

/// What processes took, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// CPU time in programs.
    pub user_s: f64,
    /// CPU time in the kernel for them.
    pub system_s: f64,
    /// From beginning to end.
    pub elapsed_s: f64,
}

impl Times {
    /// Of both together.
    pub fn and(self, other: Times) -> Times {
        Times {
            user_s: self.user_s + other.user_s,
            system_s: self.system_s + other.system_s,
            elapsed_s: self.elapsed_s + other.elapsed_s,
        }
    }
}

/// What one experiment found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExperimentResult {
    /// The experiment's name.
    pub name: String,
    /// How much was measured at each point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Planned>,
    /// Whether the run was ended before all points were measured.
    #[serde(default, skip_serializing_if = "is_false")]
    pub partial: bool,
    /// One entry for each variant of each point.
    pub points: Vec<PointResult>,
    /// Variants against themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noise: Vec<Noise>,
}

/// How much was to be measured at each point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// The length of timed samples.
    pub sample_ns: u64,
    /// Rounds of two samples each.
    pub rounds: usize,
}

impl From<&Plan> for Planned {
    fn from(plan: &Plan) -> Planned {
        Planned {
            sample_ns: u64::try_from(plan.sample().as_nanos()).unwrap_or(u64::MAX),
            rounds: plan.rounds(),
        }
    }
}

/// A variant measured once more in each round of its point, as if it were another one: how far it is from itself is noise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// The variant's name.
    pub variant: String,
    /// The operation.
    pub op: String,
    /// How memory was walked.
    pub pattern: String,
    /// How many threads.
    pub threads: usize,
    /// How many processes the samples are of, in order, with equally many each.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub processes: usize,
    /// Its samples, two for each round, as those of the point.
    pub samples: Vec<f64>,
}

/// What was measured of one variant at one point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointResult {
    /// The variant's name.
    pub variant: String,
    /// The operation.
    pub op: String,
    /// How memory was walked: a word of the experiment.
    pub pattern: String,
    /// How many threads.
    pub threads: usize,
    /// [`UNIT`].
    pub unit: String,
    /// How samples were taken.
    #[serde(default)]
    pub mode: ModeName,
    /// Operations of each sample, if they were fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u64>,
    /// Whether every thread was pinned to a CPU.
    #[serde(default)]
    pub pinned: bool,
    /// Whether there were more threads than allowed CPUs.
    #[serde(default)]
    pub oversubscribed: bool,
    /// Whether two threads ran on SMT siblings of one core; `null`: unknown.
    #[serde(default)]
    pub shared_cores: Option<bool>,
    /// The CPU of each thread that was pinned.
    #[serde(default)]
    pub cpus: Vec<usize>,
    /// Wall ns/op: measured time × threads ÷ all operations.
    pub wall: Summary,
    /// Thread ns/op: CPU time of the threads ÷ all operations. `null` where the system does not
    /// tell CPU time.
    #[serde(default)]
    pub thread: Option<Summary>,
    /// The slowest thread's rate ÷ the fastest one's, the median of all samples.
    pub fairness: f64,
    /// Wall ns/op of each sample, in the order in which they were taken; two successive ones are of
    /// the same round.
    pub samples: Vec<f64>,
    /// Thread ns/op of each sample.
    #[serde(default)]
    pub thread_samples: Vec<f64>,
    /// Fairness of each sample.
    #[serde(default)]
    pub fairness_samples: Vec<f64>,
    /// How many processes the samples are of, in order, with equally many each.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub processes: usize,
    /// How many samples were disturbed and taken again; they are not among these.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeated: usize,
    /// What else happened during each sample; empty where nobody looked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub surroundings: Vec<Surroundings>,
}

fn one() -> usize {
    1
}

// serde passes references.
fn is_one(value: &usize) -> bool {
    *value == 1
}

fn is_zero(value: &usize) -> bool {
    *value == 0
}

fn is_false(value: &bool) -> bool {
    !*value
}

/// How samples were taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModeName {
    /// For a given time.
    #[default]
    Timed,
    /// For a given number of operations, as a published method does.
    Fixed,
}

/// Text that is not a result.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Not JSON, or a field is missing or of another type.
    #[error("not a result: {0}")]
    Json(serde_json::Error),
    /// A form that this version does not know.
    #[error("results in the form `{0}`; this version reads `{SCHEMA}`")]
    Schema(String),
}

impl Results {
    /// No experiments yet.
    pub fn new(machine: Machine) -> Results {
        Results {
            schema: SCHEMA.to_owned(),
            machine,
            times: None,
            experiments: Vec::new(),
        }
    }

    /// The results as JSON text, ending in a newline.
    ///
    /// # Errors
    /// In practice none: every field can be written.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }

    /// Reads JSON text.
    ///
    /// # Errors
    /// If it is not JSON, not a result, or of another schema.
    pub fn from_json(text: &str) -> Result<Results, ReadError> {
        #[derive(Deserialize)]
        struct Head {
            schema: String,
        }
        // First, as another schema may lack any other field.
        let head: Head = serde_json::from_str(text).map_err(ReadError::Json)?;
        if head.schema != SCHEMA {
            return Err(ReadError::Schema(head.schema));
        }
        serde_json::from_str(text).map_err(ReadError::Json)
    }

    /// Writes the results to a file, all or nothing. See [`save`].
    ///
    /// # Errors
    /// See [`SaveError`].
    pub fn save(&self, path: &Path) -> Result<(), SaveError> {
        let text = self.to_json().map_err(|error| SaveError::Failed {
            path: path.to_owned(),
            error: error.into(),
        })?;
        save(path, text.as_bytes())
    }
}

/// A point of which more than one in so many samples was disturbed is not sound.
const SAMPLES_PER_DISTURBED: usize = 4;

impl PointResult {
    /// A point of these samples, timed, of which no more is known. `None` as for [`Summary::of`].
    pub fn of(
        variant: &str,
        (op, pattern, threads): (&str, &str, usize),
        samples: Vec<f64>,
    ) -> Option<PointResult> {
        Some(PointResult {
            variant: variant.to_owned(),
            op: op.to_owned(),
            pattern: pattern.to_owned(),
            threads,
            unit: UNIT.to_owned(),
            mode: ModeName::Timed,
            iterations: None,
            pinned: false,
            oversubscribed: false,
            shared_cores: None,
            cpus: Vec::new(),
            wall: Summary::of(&samples)?,
            thread: None,
            fairness: 1.0,
            fairness_samples: vec![1.0; samples.len()],
            samples,
            thread_samples: Vec::new(),
            processes: 1,
            repeated: 0,
            surroundings: Vec::new(),
        })
    }

    /// This variant's wall time ÷ the other one's, paired by round, or by process if there are several. Only for two variants of
    /// one point of one run: others share no rounds. `None` as for [`Ratio::paired`].
    pub fn ratio_to(&self, other: &PointResult) -> Option<Ratio> {
        if self.processes != other.processes {
            return None;
        }
        paired(&self.samples, &other.samples, self.processes)
    }

    /// Whether both are of the same variant, operation, pattern and number of threads.
    pub fn is_same_as(&self, other: &PointResult) -> bool {
        self.variant == other.variant && self.shares_point_with(other)
    }

    /// Whether both were measured side by side.
    pub fn shares_point_with(&self, other: &PointResult) -> bool {
        self.op == other.op
            && self.pattern == other.pattern
            && self.threads == other.threads
            && self.mode == other.mode
    }

    /// How many samples were disturbed and are here all the same, as too many had been taken again.
    pub fn disturbed(&self) -> usize {
        let is_disturbed = |found: &&Surroundings| !found.disturbed.is_empty();
        self.surroundings.iter().filter(is_disturbed).count()
    }

    /// Whether there are enough good samples: at most a quarter was disturbed.
    pub fn is_sound(&self) -> bool {
        self.disturbed() * SAMPLES_PER_DISTURBED <= self.samples.len()
    }

    /// Adds the samples of another process. What of it is not the same stays away: `false`.
    pub fn add_process(&mut self, other: &PointResult) -> bool {
        if !self.is_same_as(other) || self.samples.len() != other.samples.len() * self.processes {
            return false;
        }
        self.samples.extend(&other.samples);
        self.thread_samples.extend(&other.thread_samples);
        self.fairness_samples.extend(&other.fairness_samples);
        self.surroundings.extend_from_slice(&other.surroundings);
        self.repeated += other.repeated;
        self.processes += 1;
        self.pinned &= other.pinned;
        if let Some(wall) = Summary::of_groups(&self.samples, self.processes) {
            self.wall = wall;
        }
        self.thread = Summary::of_groups(&self.thread_samples, self.processes);
        self.fairness = stats::median(&self.fairness_samples).unwrap_or(0.0);
        true
    }
}

/// Compares by round, or by process: samples of one process share its memory's layout, so they are no evidence of their own.
fn paired(one: &[f64], other: &[f64], processes: usize) -> Option<Ratio> {
    let per_group = match processes {
        0 | 1 => SAMPLES_PER_ROUND,
        processes => one.len().checked_div(processes)?,
    };
    Ratio::paired(one, other, per_group)
}

/// The share of comparisons of a variant with itself that stay within the noise floor.
const WITHIN_FLOOR: f64 = 0.95;
/// With fewer comparisons at a number of threads, those at all numbers are taken.
const FEWEST_COMPARISONS: usize = 5;

impl ExperimentResult {
    /// Nothing measured yet.
    pub fn new(name: &str) -> ExperimentResult {
        ExperimentResult {
            name: name.to_owned(),
            plan: None,
            partial: false,
            points: Vec::new(),
            noise: Vec::new(),
        }
    }

    /// Adds what another process has measured of the same. `false`, and nothing certain, if it is not the same.
    pub fn add_process(&mut self, other: &ExperimentResult) -> bool {
        let of_point = |point: &mut PointResult| {
            let same = other.points.iter().find(|found| found.is_same_as(point));
            same.is_some_and(|same| point.add_process(same))
        };
        let of_noise = |noise: &mut Noise| {
            let is_same = |found: &&Noise| {
                found.variant == noise.variant
                    && found.op == noise.op
                    && found.pattern == noise.pattern
                    && found.threads == noise.threads
            };
            let same = other.noise.iter().find(is_same);
            same.is_some_and(|same| {
                noise.samples.extend(&same.samples);
                noise.processes += 1;
                true
            })
        };
        self.points.iter_mut().all(of_point) && self.noise.iter_mut().all(of_noise)
    }

    /// How far a variant is from itself with so many threads: 0.02 says that of a hundred comparisons of a variant with itself
    /// 95 are at most 2 % off. `None` if none was compared with itself.
    pub fn noise_floor(&self, threads: usize) -> Option<f64> {
        if self.noise.is_empty() {
            return None;
        }
        let mut points = HashMap::new();
        for point in self.points.iter().rev() {
            points.insert(
                (&point.variant, &point.op, &point.pattern, point.threads),
                point,
            );
        }
        let off = |noise: &Noise| {
            let point = points.get(&(&noise.variant, &noise.op, &noise.pattern, noise.threads))?;
            let ratio = paired(&noise.samples, &point.samples, noise.processes)?;
            Some((noise.threads, ratio.of_medians.ln().abs()))
        };
        let all: Vec<(usize, f64)> = self.noise.iter().filter_map(off).collect();
        let values = |threads: Option<usize>| {
            let is_wanted = |(at, _): &&(usize, f64)| threads.is_none_or(|threads| *at == threads);
            let wanted = all.iter().filter(is_wanted);
            wanted.map(|(_, off)| *off).collect::<Vec<f64>>()
        };
        let mut offs = values(Some(threads));
        if offs.len() < FEWEST_COMPARISONS {
            offs = values(None);
        }
        offs.sort_by(f64::total_cmp);
        let rank = (WITHIN_FLOOR * offs.len() as f64).ceil() as usize;
        Some(offs.get(rank.checked_sub(1)?)?.exp_m1())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn results(samples: Vec<f64>) -> Results {
        let mut results = Results::new(Machine::default());
        let point = PointResult::of("percpu", ("inc", "strided", 1), samples).expect("a summary");
        let mut experiment = ExperimentResult::new("local");
        experiment.points.push(PointResult {
            pinned: true,
            shared_cores: Some(false),
            cpus: vec![0],
            ..point
        });
        results.experiments.push(experiment);
        results
    }

    #[test]
    fn the_form() {
        let results = results(vec![1.0, 2.0, 3.0]);
        let text = serde_json::to_string(&results.experiments).expect("JSON");
        insta::assert_snapshot!(text, @r#"[{"name":"local","points":[{"variant":"percpu","op":"inc","pattern":"strided","threads":1,"unit":"ns/op","mode":"timed","pinned":true,"oversubscribed":false,"shared_cores":false,"cpus":[0],"wall":{"mean":2.0,"median":2.0,"stddev":1.0,"min":1.0,"max":3.0,"ci95":null},"thread":null,"fairness":1.0,"samples":[1.0,2.0,3.0],"thread_samples":[],"fairness_samples":[1.0,1.0,1.0]}]}]"#);
        let text = results.to_json().expect("JSON");
        assert!(text.starts_with("{\n  \"schema\": \"countersink-results/1\",\n  \"machine\": {"));
        assert!(text.ends_with("}\n"));
    }

    #[test]
    fn the_least_that_can_be_read_and_unknown_fields() {
        let text = r#"{"schema":"countersink-results/1","machine":{"new":1},"new":[],
            "experiments":[{"name":"local","points":[{"variant":"a","op":"inc","pattern":"hot",
            "threads":2,"unit":"ns/op","new":{},"wall":{"mean":1,"median":1,"stddev":0,"min":1,"max":1,
            "ci95":null},"thread":{"mean":1.5,"median":1,"stddev":0,"min":1,"max":2,"ci95":[1,2]},
            "fairness":0.5,"samples":[1,1]}]}]}"#;
        let results = Results::from_json(text).expect("a result");
        let point = &results.experiments[0].points[0];
        assert_eq!((point.threads, point.mode), (2, ModeName::Timed));
        assert_eq!(point.thread.and_then(|t| t.ci95), Some([1.0, 2.0]));
    }

    #[test]
    fn other_text_is_refused_with_a_reason() {
        let other = Results::from_json(r#"{"schema":"countersink-results/9"}"#);
        let message = other.expect_err("another schema").to_string();
        assert!(message.contains("countersink-results/9"), "{message}");
        assert!(matches!(Results::from_json("{}"), Err(ReadError::Json(_))));
        assert!(matches!(Results::from_json("PK"), Err(ReadError::Json(_))));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_to_the_last_bit(
            samples in prop::collection::vec(0.001..1e7_f64, 1..30)
        ) {
            let results = results(samples);
            let text = results.to_json().expect("JSON");
            prop_assert_eq!(Results::from_json(&text).expect("a result"), results);
        }
    }
}

//! The form in which results are kept: JSON, schema [`SCHEMA`].
//!
//! Readers ignore fields that they do not know, so fields may be added under the same schema.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::save::{SaveError, save};
use crate::schedule::SAMPLES_PER_ROUND;
use crate::stats::{Ratio, Summary};

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
    /// The experiments, in the order in which they were run.
    pub experiments: Vec<ExperimentResult>,
}

/// What one experiment found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExperimentResult {
    /// The experiment's name.
    pub name: String,
    /// One entry for each variant of each point.
    pub points: Vec<PointResult>,
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

impl PointResult {
    /// This variant's wall time ÷ the other one's, paired by round. Only for two variants of one
    /// point of one run: others share no rounds. `None` as for [`Ratio::paired`].
    pub fn ratio_to(&self, other: &PointResult) -> Option<Ratio> {
        Ratio::paired(&self.samples, &other.samples, SAMPLES_PER_ROUND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn results(samples: Vec<f64>) -> Results {
        let mut results = Results::new(Machine::default());
        let wall = Summary::of(&samples).expect("a summary");
        results.experiments.push(ExperimentResult {
            name: "local".to_owned(),
            points: vec![PointResult {
                variant: "percpu".to_owned(),
                op: "inc".to_owned(),
                pattern: "strided".to_owned(),
                threads: 1,
                unit: UNIT.to_owned(),
                mode: ModeName::Timed,
                iterations: None,
                pinned: true,
                oversubscribed: false,
                shared_cores: Some(false),
                cpus: vec![0],
                wall,
                thread: None,
                fairness: 1.0,
                thread_samples: Vec::new(),
                fairness_samples: vec![1.0; samples.len()],
                samples,
            }],
        });
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

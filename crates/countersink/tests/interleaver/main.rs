//! The region's protocols on the interleaver: takes and resets beside adds, extremes, registration,
//! and gauges, with every preemption, migration and kill at every step. `docs/region-format.md` is
//! what they are written from.
//!
//! Each file has one protocol: a model, the laws, the settings in which they hold, and mutants, each
//! a known mistake that the laws must catch. What the percpu operations do within a lane is
//! explored by that crate's tests; here a section is one load and one commit.
//!
//! Run with `--nocapture` to see how many states each test visits, and how each mutant fails.

mod add;
mod bounded;
mod extremes;
mod gauge;
mod register;
mod take;

use countersink_interleaver::{Explorer, Failure, Kind, Protocol, Report};

/// Virtual CPUs where there are sections.
const CPUS: usize = 2;
/// The lane of each CPU, then the shared one.
const LANES: usize = CPUS + 1;
/// The shared lane.
const SHARED: usize = CPUS;

fn explore<P: Protocol>(name: &str, explorer: &Explorer, model: &P) -> Result<Report, Failure> {
    let result = explorer.explore(model);
    match &result {
        Ok(report) => println!("{name}: {report}"),
        Err(failure) => println!("{name}: {failure}"),
    }
    result
}

/// Explores what must hold, and must not depend on the dead.
#[track_caller]
fn holds<P: Protocol>(name: &str, explorer: &Explorer, model: &P) -> Report {
    match explore(name, explorer, model) {
        Ok(report) => {
            assert_eq!(report.stuck_after_kill, 0, "{name}: waits for the dead");
            report
        }
        Err(failure) => panic!("{name}: {failure}"),
    }
}

/// Explores a mutant, which must break the law whose message begins like this.
#[track_caller]
fn breaks<P: Protocol>(name: &str, explorer: &Explorer, model: &P, law: &str) {
    let Err(failure) = explore(name, explorer, model) else {
        panic!("{name} was not found");
    };
    assert_eq!(failure.kind, Kind::Law, "{name}: {failure}");
    assert!(failure.message.starts_with(law), "{name}: {failure}");
}

//! The experiment `local` with invented times: what it measures, that its sums are checked, and what
//! the published table says about the result.

use countersink_experiments::local::as_published::{CONCLUSIONS, Row};
use countersink_experiments::local::published::{PUBLISHED, Verdict, WAYS, orderings, our_ratios};
use countersink_experiments::local::{COLUMNS, LocalExperiment, memory};
use countersink_harness::machine::Machine;
use countersink_harness::measure;
use countersink_harness::mock::{MockRunner, even_sample};
use countersink_harness::progress::Silent;
use countersink_harness::result::{PointResult, Results};
use countersink_harness::schedule::{MIN_ROUNDS, Plan};

/// Runs the experiment with so many ns for each operation of a variant.
fn measured(experiment: &LocalExperiment, ns: impl Fn(&str) -> u64) -> Vec<PointResult> {
    const OPERATIONS: u64 = 1000;
    let mut runner = MockRunner::new(|call| {
        even_sample(call.threads, OPERATIONS, OPERATIONS * ns(call.variant))
    });
    let plan = Plan::new(std::time::Duration::from_millis(1), MIN_ROUNDS).expect("a plan");
    let mut results = Results::new(Machine::default());
    measure::run(experiment, &mut runner, &plan, &mut Silent, &mut results).expect("results");
    assert!(results.machine.conditions.contains_key("mechanism"));
    results.experiments.remove(0).points
}

/// The order of x86 in 2008, with figures that no two ways share.
fn like_2008(variant: &str) -> u64 {
    match variant {
        "local" => 2,
        "trivalue" => 4,
        "deferred" => 6,
        "atomic" => 10,
        "sigmask" => 400,
        _ => 3,
    }
}

#[test]
fn every_variant_stands_in_its_points_and_its_sums_are_checked() {
    let experiment = LocalExperiment::new(&[1, 3]);
    let points = measured(&experiment, like_2008);
    let variants = |op: &str, pattern: &str, threads: usize| {
        let here = points.iter().filter(|point| {
            (point.op.as_str(), point.pattern.as_str(), point.threads) == (op, pattern, threads)
        });
        here.map(|point| point.variant.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let ways = "atomic sigmask deferred trivalue local percpu";
    for op in ["inc", "add", "add_return", "read"] {
        assert_eq!(variants(op, "strided", 1), format!("{ways} loop"));
        for threads in [1, 3] {
            assert_eq!(
                variants(op, "shared", threads),
                "atomic locked-lanes percpu"
            );
        }
    }
    assert_eq!(
        variants("cpu_local_inc", "hot", 1),
        format!("{ways} plain loop")
    );
    for pattern in ["hot", "rotating"] {
        assert_eq!(variants("inc", pattern, 1), format!("{ways} plain loop"));
    }

    // Every point but the empty loops has a sum: 7 samples of 1000 operations, one of them to warm up,
    // and 6 more where a variant was measured against itself.
    let sums = experiment.sums();
    let loops = points
        .iter()
        .filter(|point| point.variant == "loop")
        .count();
    assert_eq!(sums.len() + loops, points.len());
    for sum in sums {
        let threads = if sum.column.ends_with("3 threads") {
            3
        } else {
            1
        };
        let samples = sum.operations / (1000 * threads);
        assert!([7, 13].contains(&samples), "{sum:?}");
        assert_eq!(sum.operations, samples * 1000 * threads, "{sum:?}");
        let effect = match sum.column.split(' ').next() {
            Some("inc" | "cpu_local_inc") => 1,
            Some("add") => 1234,
            Some("add_return") => 7,
            _ => 0,
        };
        assert_eq!(sum.value, effect * sum.operations as i64, "{sum:?}");
    }
}

#[test]
fn the_fixed_experiment_asks_for_the_published_iterations() {
    let experiment = LocalExperiment::fixed();
    let points = countersink_harness::variant::Experiment::points(&experiment);
    assert_eq!(points.len(), COLUMNS.len());
    for point in points {
        assert_eq!(
            point.mode,
            countersink_harness::variant::Mode::Fixed(33_554_432)
        );
    }
}

#[test]
fn memory_is_the_seeds_8_mb_against_24() {
    const MB: usize = 1 << 20;
    let memory = memory();
    let of = |way: &str| {
        memory
            .iter()
            .find(|(name, _)| *name == way)
            .map(|(_, bytes)| bytes / MB)
    };
    assert_eq!(
        (of("atomic"), of("local"), of("trivalue")),
        (Some(8), Some(8), Some(24))
    );
}

#[test]
fn published_ratios_are_to_local_t() {
    let core2 = PUBLISHED[0].ratios();
    assert_eq!(core2[0][0], Some(118.0 / 36.0));
    assert_eq!(core2[3], [Some(1.0); COLUMNS.len()]);
    // What the seed has as "-" stays unknown.
    assert_eq!(PUBLISHED[1].ratios()[0][2], None);

    let points = measured(&LocalExperiment::new(&[]), like_2008);
    let ours = our_ratios(&points, "deferred");
    assert_eq!(ours[0], [Some(5.0); COLUMNS.len()]);
    assert_eq!(ours[1], [Some(3.0); COLUMNS.len()]);
    assert_eq!(
        our_ratios(&points, "sigmask")[1],
        [Some(200.0); COLUMNS.len()]
    );
}

#[test]
fn orderings_hold_are_reversed_or_cannot_be_told() {
    let find = |points: &[PointResult], faster: &str, slower: &str| {
        let index = |way: &str| {
            WAYS.iter()
                .position(|(name, _)| *name == way)
                .expect("a way")
        };
        let all = orderings(&PUBLISHED[0], points, "deferred");
        let of = |o: &&countersink_experiments::local::published::Ordering| {
            o.column == 0 && o.faster == index(faster) && o.slower == index(slower)
        };
        all.iter().find(of).map(|ordering| ordering.verdict)
    };
    let experiment = LocalExperiment::new(&[]);
    let same = measured(&experiment, like_2008);
    assert_eq!(find(&same, "local_t", "atomic_long"), Some(Verdict::Held));
    assert_eq!(find(&same, "atomic_long", "local_t"), None);
    let reversed = measured(
        &experiment,
        |variant| if variant == "atomic" { 1 } else { 2 },
    );
    assert_eq!(
        find(&reversed, "local_t", "atomic_long"),
        Some(Verdict::Reversed)
    );
    assert_eq!(
        find(&reversed, "local_t", "trivalue"),
        Some(Verdict::CannotTell)
    );
    // Equal published figures are no ordering: atomic_long and local_t in cpu_local_inc on PPC64.
    let ppc = orderings(&PUBLISHED[2], &same, "deferred");
    assert!(
        !ppc.iter()
            .any(|o| o.column == 3 && o.faster == 0 && o.slower == 3)
    );
}

#[test]
fn conclusions_are_judged_by_either_method() {
    let points = measured(&LocalExperiment::new(&[]), like_2008);
    let rows = |ns: fn(&str) -> u64| {
        ["atomic", "sigmask", "deferred", "trivalue", "local"].map(|variant| Row {
            variant,
            ns: [ns(variant); COLUMNS.len()],
        })
    };
    let as_then = rows(like_2008);
    let other = rows(|variant| if variant == "local" { 9 } else { 1 });
    // Whole nanoseconds hide a difference.
    let cut_off = rows(|_| 1);
    let no_platform = CONCLUSIONS[0];
    assert_eq!(no_platform.by_right_method(&points), Verdict::Held);
    assert_eq!(no_platform.by_published_method(&as_then), Verdict::Held);
    assert_eq!(no_platform.by_published_method(&other), Verdict::Reversed);
    assert_eq!(
        no_platform.by_published_method(&cut_off),
        Verdict::CannotTell
    );
    assert_eq!(no_platform.by_published_method(&[]), Verdict::CannotTell);
}

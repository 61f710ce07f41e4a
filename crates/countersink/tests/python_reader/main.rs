//! `examples/read_region.py`, which is written from `docs/region-format.md` alone, finds what the program
//! knows that it counted, and what the library's reader finds.
#![cfg(all(target_os = "linux", not(countersink_portable)))]

#[path = "../common/mod.rs"]
mod common;
mod library;
mod program;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use common::child::{alone, alone_with};
use common::cpus;
use common::read::region_of;
use countersink::reader::{Kind, Region};
use program::{LEVEL, LOOKUP, REQUESTS, SIZES, TAKEN};
use serde_json::Value as Json;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/read_region.py");

/// Whether there is a Python that can run it. Says so if not.
fn has_python() -> bool {
    let version = "import sys; sys.exit(sys.version_info < (3, 8))";
    let status = Command::new("python3").args(["-c", version]).status();
    let has = status.is_ok_and(|status| status.success());
    if !has {
        println!("NOT TESTED: there is no python3 of version 3.8 or later");
    }
    has
}

/// What a script says of the one region of a process or file.
fn ask(script: &Path, target: &str) -> Json {
    let mut command = Command::new("python3");
    command.arg(script).args([target, "--json"]);
    let output = command.output().expect("Python runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {error}", output.status);
    let mut answer: Json = serde_json::from_slice(&output.stdout).expect("JSON");
    let regions = answer["regions"].as_array_mut().expect("regions");
    assert_eq!(regions.len(), 1, "regions of {target}");
    regions.remove(0)
}

/// The value of the metric with this name, and with a label value if one is named.
fn found<'a>(region: &'a Json, name: &str, label: Option<&str>) -> &'a Json {
    let metrics = region["metrics"].as_array().expect("metrics");
    let mut named = metrics.iter().filter(|metric| {
        let mut values = metric["label_values"].as_object().into_iter().flatten();
        metric["name"] == name && label.is_none_or(|label| values.any(|value| value.1 == label))
    });
    let metric = named.next().unwrap_or_else(|| panic!("no {name}"));
    assert!(named.next().is_none(), "{name} {label:?} is there twice");
    assert_eq!(metric["torn"], false, "{name}");
    &metric["value"]
}

#[test]
fn it_finds_what_the_program_counted() {
    alone("it_finds_what_the_program_counted", || {
        if !has_python() {
            return;
        }
        let taken = program::count();
        let pid = std::process::id();
        let answer = ask(Path::new(SCRIPT), &pid.to_string());
        program::compare(&answer, taken);
        library::compare(&answer, &region_of(pid));
        mutants_are_found(&answer);
    });
}

/// Scripts that are known to be wrong say something else.
fn mutants_are_found(answer: &Json) {
    let script = std::fs::read_to_string(SCRIPT).expect("the script");
    let directory = tempfile::tempdir().expect("a directory");
    for (what, right, wrong) in [
        (
            "resets",
            "sums, extremes = bias, {}",
            "sums, extremes = [0] * len(bias), {}",
        ),
        (
            "the lanes of CPUs",
            " + list(range(FIRST_CPU, FIRST_CPU + self.cpus))",
            "",
        ),
        ("generations", "== present != 0}", "}"),
    ] {
        assert_eq!(script.matches(right).count(), 1, "{what}");
        let path = directory.path().join("mutant.py");
        std::fs::write(&path, script.replace(right, wrong)).expect("written");
        let other = ask(&path, &std::process::id().to_string());
        assert!(other["metrics"] != answer["metrics"], "without {what}");
    }
}

#[test]
fn it_reads_files() {
    let closed = Permissions::from_mode(0o700);
    let directory = tempfile::Builder::new().permissions(closed).tempdir();
    let directory = directory.expect("a directory");
    let variable = [("COUNTERSINK_DIR", directory.path().as_os_str())];
    alone_with("it_reads_files", &variable, || {
        if !has_python() {
            return;
        }
        let taken = program::count();
        let directory = std::env::var_os("COUNTERSINK_DIR").expect("set");
        let files = std::fs::read_dir(directory).expect("files");
        let paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
        assert_eq!(paths.len(), 1, "{:?}", countersink::region::status());
        let region = Region::open_file(&paths[0]).expect("a region");
        assert_eq!(region.info().kind, Kind::File);
        let answer = ask(Path::new(SCRIPT), paths[0].to_str().expect("UTF-8"));
        program::compare(&answer, taken);
        library::compare(&answer, &region);
    });
}

#[test]
fn what_it_finds_under_load_lies_between_before_and_after() {
    alone(
        "what_it_finds_under_load_lies_between_before_and_after",
        || {
            if !has_python() {
                return;
            }
            let stop = AtomicBool::new(false);
            thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        while !stop.load(Relaxed) {
                            count_under_load();
                        }
                    });
                }
                scope.spawn(|| {
                    while !stop.load(Relaxed) {
                        TAKEN.take();
                        cpus::pause();
                    }
                });
                cpus::wait_until(|| LOOKUP.read().events > 0 && SIZES.read().count() > 0);
                (0..8).for_each(|_| read_under_load());
                stop.store(true, Relaxed);
            });
        },
    );
}

/// Each metric is counted before the next one.
fn count_under_load() {
    REQUESTS.inc();
    TAKEN.inc();
    LEVEL.inc();
    LEVEL.dec();
    LOOKUP.start().stop_bytes(5);
    SIZES.record(1);
}

fn read_under_load() {
    let before = [REQUESTS.sum(), LOOKUP.read().events, SIZES.read().count()];
    let answer = ask(Path::new(SCRIPT), &std::process::id().to_string());
    let after = [REQUESTS.sum(), LOOKUP.read().events, SIZES.read().count()];
    let number = |name: &str, field: &str| found(&answer, name, None)[field].as_u64();
    for (at, (name, field)) in [
        ("py_requests", "value"),
        ("py_lookup", "events"),
        ("py_sizes", "count"),
    ]
    .into_iter()
    .enumerate()
    {
        let value = number(name, field).expect("a number");
        assert!(
            (before[at]..=after[at]).contains(&value),
            "{name} {value}: {before:?} {after:?}"
        );
    }
    let metrics = answer["metrics"].as_array().expect("metrics");
    let taken = metrics.iter().find(|metric| metric["name"] == "py_taken");
    let taken = taken.expect("the counter that is taken");
    // Below zero would be more than was ever added.
    let value = taken["value"]["value"].as_u64().expect("a number");
    assert!(
        taken["torn"] == true || value <= after[0],
        "{taken} of {after:?}"
    );
    let level = found(&answer, "py_level", None);
    let bound = |field: &str| level[field].as_i64().expect("a number");
    assert!(bound("low") <= 2 && bound("high") >= 0, "{level}");
    assert!(bound("low") <= bound("high"), "{level}");
    assert_eq!(number("py_lookup", "min_bytes"), Some(5));
    assert_eq!(number("py_lookup", "max_bytes"), Some(5));
}

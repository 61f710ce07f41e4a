//! Runs that are ended and go on, and runs in several processes.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use countersink_harness::result::Results;
use rustix::process::{Pid, Signal, kill_process};

/// Little to measure, and one experiment after it.
const TWO: [&str; 7] = [
    "rwsem",
    "check-before-set",
    "--op",
    "read",
    "--threads",
    "1",
    "--quick",
];

fn bench(arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("countersink"));
    command.arg("bench").args(arguments);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn read(path: &Path) -> Results {
    let text = std::fs::read_to_string(path).expect("a file");
    Results::from_json(&text).expect("results")
}

/// Sends what Ctrl-C sends, as soon as there is a file.
fn interrupt_after(child: &Child, file: &Path) {
    while !file.exists() {
        std::thread::yield_now();
    }
    let pid = Pid::from_child(child);
    kill_process(pid, Signal::INT).expect("it is there");
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn what_was_finished_is_kept_and_gone_on_with() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("results.json");
    let path = file.to_str().expect("text");
    let child = bench(&[&TWO[..], &["--json", path]].concat())
        .spawn()
        .expect("it starts");
    // The file is written after the first experiment.
    interrupt_after(&child, &file);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let text = said(&output);
    assert!(
        text.contains(&format!(
            "are in {path}, marked as partial, and `--resume {path}` goes on"
        )),
        "{text}"
    );
    let partial = read(&file);
    let [first, second] = &partial.experiments[..] else {
        panic!("{partial:?}")
    };
    assert!(!first.partial && second.partial);
    assert_eq!(second.name, "check-before-set");

    // Not with other samples.
    let other = ["check-before-set", "--full", "--resume", path];
    let output = bench(&other).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).contains("go on with the same options"),
        "{output:?}"
    );
    assert_eq!(read(&file), partial, "nothing was touched");

    let output = bench(&[&TWO[..], &["--resume", path]].concat())
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{output:?}");
    assert!(
        said(&output).contains("rwsem was measured before"),
        "{output:?}"
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains("On this machine, looking before setting pays"),
        "{text}"
    );
    let whole = read(&file);
    assert!(whole.experiments.iter().all(|known| !known.partial));
    assert_eq!(whole.experiments[0], partial.experiments[0]);
    let begun = &partial.experiments[1].points;
    assert_eq!(&whole.experiments[1].points[..begun.len()], &begun[..]);
    assert!(whole.experiments[1].points.len() >= 60);
}

#[test]
fn results_of_another_machine_or_none_do_not_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("results.json");
    let path = file.to_str().expect("text");
    for (text, reason) in [
        (
            r#"{"schema":"countersink-results/1","machine":{"arch":"pdp11"},"experiments":[]}"#,
            "architecture was pdp11",
        ),
        ("{", "not a result"),
    ] {
        std::fs::write(&file, text).expect("written");
        let output = bench(&["rwsem", "--quick", "--resume", path])
            .output()
            .expect("it starts");
        assert_eq!(output.status.code(), Some(1));
        assert!(said(&output).contains(reason), "{output:?}");
        assert_eq!(said(&output).lines().count(), 1);
        assert_eq!(std::fs::read_to_string(&file).expect("a file"), text);
    }
    let output = bench(&["--resume", "/no/such/file"])
        .output()
        .expect("it starts");
    assert!(
        said(&output).starts_with("countersink: cannot read /no/such/file"),
        "{output:?}"
    );
}

#[test]
fn several_processes_measure_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("results.json");
    let path = file.to_str().expect("text");
    let arguments = [
        "rwsem",
        "--op",
        "read",
        "--threads",
        "1",
        "--quick",
        "--json",
        path,
    ];
    let output = bench(&arguments).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let results = read(&file);
    let [experiment] = &results.experiments[..] else {
        panic!("{results:?}")
    };
    for point in &experiment.points {
        assert_eq!((point.processes, point.samples.len()), (6, 12), "{point:?}");
        assert_eq!(point.surroundings.len(), 12);
        // The interval is over processes: the least and the largest of their medians.
        let median = |values: &[f64]| countersink_harness::stats::median(values).expect("values");
        let medians: Vec<f64> = point.samples.chunks(2).map(median).collect();
        let ends =
            [f64::min, f64::max].map(|end| medians.iter().copied().reduce(end).expect("six"));
        assert_eq!(point.wall.ci95, Some(ends));
    }
    assert_eq!(experiment.noise[0].processes, 6);
    let ratio = experiment.points[1]
        .ratio_to(&experiment.points[0])
        .expect("a ratio");
    assert_eq!(ratio.rounds, 6);
}

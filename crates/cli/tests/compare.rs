//! `countersink compare` as a user types it.

use std::path::PathBuf;

use assert_cmd::Command;

/// Files in a folder of their own.
struct Files(tempfile::TempDir);

impl Files {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).expect("written");
        }
        Files(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Status, standard output and standard error; names of files are those of the folder.
    fn compare(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let mut command = Command::cargo_bin("countersink").expect("the command is built");
        command
            .current_dir(self.0.path())
            .arg("compare")
            .args(arguments);
        let output = command.output().expect("it starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    }
}

const HEAD: &str = "tasks,processes,processes_idle,threads,threads_idle,linear\n0,0,100,0,100,0\n";

/// Rates of one run.
fn rates(rates: [f64; 2]) -> String {
    format!("{HEAD}1,{},0,0,0,0\n4,{},0,0,0,0\n", rates[0], rates[1])
}

#[test]
fn rates_of_several_runs_are_the_table_of_the_mails() {
    let files = Files::new(&[
        ("a1.csv", &rates([100.0, 390.0])),
        ("a2.csv", &rates([101.0, 410.0])),
        ("a3.csv", &rates([99.0, 400.0])),
        ("b1.csv", &rates([110.0, 400.0])),
        ("b2.csv", &rates([111.0, 380.0])),
        ("b3.csv", &rates([109.0, 400.0])),
    ]);
    let arguments = [
        "a1.csv,a2.csv,a3.csv",
        "b1.csv,b2.csv,b3.csv",
        "--names",
        "v5.0-rc6,v5.0-rc6 dirty",
    ];
    let (status, stdout, stderr) = files.compare(&arguments);
    assert_eq!((status, stderr.as_str()), (Some(0), ""));
    // 3 / (1/110 + 1/111 + 1/109) = 109.99394 over 99.99333.
    // Without the spaces before it.
    let expected = "v5.0-rc6          v5.0-rc6 dirty
Hmean     processes-1 ops/s      99.9933 (   0.00%)       109.99 *  10.00%*
Hmean     processes-4 ops/s       399.83 (   0.00%)       393.10 (  -1.68%)
";
    assert!(stdout.trim_start().starts_with(expected), "{stdout}");
    assert!(stdout.contains("Stddev    processes-1 ops/s"), "{stdout}");
    assert!(
        stdout.contains("Welch's t-test, two-sided, p < 0.05 (welch)"),
        "{stdout}"
    );
    assert!(
        stdout
            .contains("v5.0-rc6 dirty: 1 better, 0 worse, 1 without a difference that can be told"),
        "{stdout}"
    );
    // More is better: backwards it is worse, and can be made a failure.
    let backwards = ["b1.csv,b2.csv,b3.csv", "a1.csv,a2.csv,a3.csv"];
    assert_eq!(files.compare(&backwards).0, Some(0));
    let failing = [&backwards[..], &["--fail-on", "slower"]].concat();
    let (status, stdout, _) = files.compare(&failing);
    assert_eq!(status, Some(1));
    assert!(stdout.contains("*  -9.09%*"), "{stdout}");
    assert_eq!(
        files
            .compare(&[&arguments[..], &["--fail-on", "slower"]].concat())
            .0,
        Some(0)
    );
}

#[test]
fn each_rule_is_named_and_stars_by_its_own() {
    let go = |values: [f64; 3]| {
        let line = |value: &f64| format!("BenchmarkAdd-2 1000 {value} ns/op\n");
        values.iter().map(line).collect::<String>()
    };
    let files = Files::new(&[
        ("a.txt", &go([1.0, 2.0, 3.0])),
        ("b.txt", &go([3.0, 4.0, 5.0])),
    ]);
    for (rule, is_starred) in [
        ("welch", false),
        ("mmtests-2018", true),
        ("mmtests-2024", false),
    ] {
        let (status, stdout, _) = files.compare(&["a.txt", "b.txt", "--stars", rule]);
        assert_eq!(status, Some(0));
        let row = "Amean     Add-2 ns/op       2.0000 (   0.00%)       4.0000 ";
        let star = if is_starred {
            "*-100.00%*"
        } else {
            "(-100.00%)"
        };
        assert!(
            stdout.contains(&format!("{row}{star}\n")),
            "{rule}: {stdout}"
        );
        assert!(stdout.contains(&format!("({rule})")), "{stdout}");
    }
}

/// A result of one point.
fn result(cpu: &str, kernel: &str, samples: &str) -> String {
    let point = |threads: u32| {
        format!(
            r#"{{"variant":"a","op":"inc","pattern":"hot","threads":{threads},"unit":"ns/op","wall":{{"mean":1,"median":1,
            "stddev":0,"min":1,"max":1,"ci95":null}},"fairness":1,"samples":[{samples}]}}"#
        )
    };
    format!(
        r#"{{"schema":"countersink-results/1","machine":{{"cpu_model":"{cpu}","kernel":"{kernel}"}},
        "experiments":[{{"name":"local","points":[{},{}]}}]}}"#,
        point(1),
        point(2)
    )
}

#[test]
fn times_of_different_machines_are_not_shown_side_by_side() {
    let files = Files::new(&[
        ("a.json", &result("A", "6.1", "2,2.1")),
        ("b.json", &result("A", "6.2", "2,2.1")),
        ("c.json", &result("C", "6.2", "3,3.1")),
    ]);
    let (_, stdout, _) = files.compare(&["a.json", "b.json"]);
    assert!(
        stdout.contains("local a inc hot-1 ns/op       2.0500 "),
        "{stdout}"
    );
    assert!(
        stdout.contains("\nkernel: 6.1 in a, 6.2 in b\n"),
        "{stdout}"
    );
    let (_, stdout, _) = files.compare(&["a.json", "c.json"]);
    assert!(
        stdout.contains("local a inc hot-2 ns/op       1.0000 (   0.00%)       1.0000 "),
        "{stdout}"
    );
    assert!(
        stdout.contains("\nCPU: A in a, C in c\n") && stdout.contains("different machines"),
        "{stdout}"
    );
    let (_, stdout, _) = files.compare(&["a.json", "c.json", "--absolute"]);
    assert!(stdout.contains("       3.0500 "), "{stdout}");
    let (status, _, stderr) = files.compare(&["a.json,c.json", "b.json"]);
    assert_eq!(status, Some(1));
    assert!(
        stderr.contains("c.json is of another machine than a"),
        "{stderr}"
    );
}

/// Saved results become CSV, Go's form, markdown and themselves; what Go's form says is what they say.
#[test]
fn results_are_rendered_again() {
    let files = Files::new(&[("a.json", &result("A", "6.1", "2,2.1")), ("bad", "x")]);
    let render = |arguments: &[&str]| {
        let mut command = Command::cargo_bin("countersink").expect("the command is built");
        command
            .current_dir(files.0.path())
            .arg("render")
            .args(arguments);
        let output = command.output().expect("it starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    assert!(render(&["a.json"]).1.contains("| a | inc | hot | 1 |"));
    assert!(
        render(&["a.json", "--format", "csv"])
            .1
            .contains("\nlocal,a,inc,hot,1,ns/op,1,")
    );
    assert_eq!(
        render(&["a.json", "--format", "go", "--output", "go.txt"]).0,
        Some(0)
    );
    assert_eq!(
        render(&["a.json", "--format", "json", "--output", "b.json"]).0,
        Some(0)
    );
    let (status, stdout, _) = files.compare(&["a.json", "b.json"]);
    assert_eq!(status, Some(0));
    assert!(
        stdout.contains("0 better, 0 worse, 2 without a difference"),
        "{stdout}"
    );
    let (_, stdout, _) = files.compare(&["go.txt", "go.txt"]);
    assert!(
        stdout.contains(
            "Amean     Local/op=inc/pattern=hot/variant=a/threads=1-1 ns/op       2.0500 "
        ),
        "{stdout}"
    );
    for (arguments, sentence) in [
        (&["bad"][..], "bad: not a result"),
        (&["nothing"], "cannot read nothing"),
        (&["a.json", "--output", "/no/such/folder/x"], "cannot write"),
    ] {
        let (status, stdout, stderr) = render(arguments);
        assert_eq!((status, stdout.as_str()), (Some(1), ""), "{stderr}");
        assert!(
            stderr.contains(sentence) && stderr.lines().count() == 1,
            "{stderr}"
        );
    }
}

#[test]
fn what_cannot_be_compared_is_one_sentence() {
    let files = Files::new(&[
        ("a.csv", &rates([1.0, 2.0])),
        ("go.txt", "BenchmarkAdd-2 1000 5 ns/op\n"),
        ("other.txt", "BenchmarkAdd-2 1000 5 MB/s\n"),
        ("bad.csv", "tasks,processes\n1,NaN\n"),
        ("empty", ""),
    ]);
    std::fs::write(files.path("binary"), [0xff, 0xfe]).expect("written");
    for (arguments, status, sentence) in [
        (&["a.csv"][..], 2, "BASE NEW"),
        (&["a.csv", "nothing"], 1, "cannot read nothing"),
        (
            &["a.csv", "go.txt"],
            1,
            "the files have nothing in common: a, go",
        ),
        (
            &["go.txt", "other.txt"],
            1,
            "Add-2 is in ns/op in go, and in MB/s in other",
        ),
        (
            &["a.csv", "bad.csv"],
            1,
            "bad.csv: processes-1 has the value NaN",
        ),
        (
            &["a.csv", "empty"],
            1,
            "empty: neither results of this program",
        ),
        (&["a.csv", "binary"], 1, "binary is not text"),
        (
            &["a.csv", "a.csv", "--names", "x"],
            1,
            "1 names for 2 columns",
        ),
        (&["a.csv", "a.csv", "--stars", "best"], 2, "invalid value"),
    ] {
        let (ended, stdout, stderr) = files.compare(arguments);
        assert_eq!(
            (ended, stdout.as_str()),
            (Some(status), ""),
            "{arguments:?}: {stderr}"
        );
        assert!(stderr.contains(sentence), "{arguments:?}: {stderr}");
        assert!(status == 2 || stderr.lines().count() == 1, "{stderr}");
    }
    // One value says nothing, and that is said.
    let (_, stdout, _) = files.compare(&["a.csv", "a.csv"]);
    assert!(
        stdout.contains("2 of one value only, of which nothing can be told"),
        "{stdout}"
    );
}

/// Results of a run with four points, at these ns, whose noise was measured.
fn results(points: [f64; 4]) -> String {
    use countersink_harness::machine::Machine;
    use countersink_harness::result::{ExperimentResult, Noise, PointResult, Results};
    let mut measured = ExperimentResult::new("some");
    for (number, around) in points.into_iter().enumerate() {
        let variant = format!("way {number}");
        let samples: Vec<f64> = (0..16)
            .map(|at| around * (1.0 + 0.001 * f64::from(at % 5)))
            .collect();
        measured.noise.push(Noise {
            variant: variant.clone(),
            op: "do".to_owned(),
            pattern: "p".to_owned(),
            threads: 1,
            processes: 1,
            samples: samples.iter().map(|sample| sample * 1.01).collect(),
        });
        let point = PointResult::of(&variant, ("do", "p", 1), samples);
        measured.points.extend(point);
    }
    let mut results = Results::new(Machine::default());
    results.experiments.push(measured);
    results.to_json().expect("JSON")
}

#[test]
fn results_of_ours_have_verdicts() {
    let slower = results([10.0, 20.0, 45.0, 40.0]);
    let files = Files::new(&[
        ("base.json", &results([10.0, 20.0, 30.0, 40.0])),
        ("slower.json", &slower),
        (
            "partial.json",
            &slower.replace("\"points\"", "\"partial\": true, \"points\""),
        ),
    ]);
    let (status, stdout, _) = files.compare(&["base.json", "slower.json"]);
    assert_eq!(status, Some(0));
    for line in [
        "points, and beyond the noise of both: 0 faster, 1 slower, 3 the same, of 0 it cannot be told",
        "some way 2 do p-1: slower, 1.500 [1.49",
        "of the time; noise 1.0 %",
        "--processes 6 tells more",
    ] {
        assert!(stdout.contains(line), "{line} is missing in\n{stdout}");
    }
    let failing = |one, other| files.compare(&[one, other, "--fail-on", "slower"]);
    assert_eq!(failing("base.json", "slower.json").0, Some(1));
    assert_eq!(failing("slower.json", "base.json").0, Some(0));
    let (_, stdout, _) = failing("base.json", "partial.json");
    assert!(
        stdout.contains("partial was ended before all points"),
        "{stdout}"
    );
}

/// Files that somebody made to break things give one sentence or the right answer.
#[test]
fn hostile_files_are_one_sentence_or_right() {
    let deep = "[".repeat(100_000);
    let huge = results([1.0; 4]).replace("\"fairness\": 1.0", "\"fairness\": 1e999");
    let files = Files::new(&[
        ("good.txt", "BenchmarkAdd-2 1000 5 ns/op\n"),
        (
            "crlf.txt",
            "BenchmarkAdd-2 1000 5 ns/op\r\nBenchmarkAdd-2 1000 5 ns/op\r\n",
        ),
        ("deep.json", &format!("{{\"schema\": {deep}")),
        ("huge.json", &huge),
        ("nan.json", &results([1.0; 4]).replace("1.001", "NaN")),
        (
            "least.json",
            "{\"schema\":\"countersink-results/1\",\"machine\":{},\"experiments\":[]}",
        ),
        ("largest.txt", "BenchmarkAdd-2 1000 1e308 ns/op\n"),
        (
            "escape.txt",
            "BenchmarkAdd\u{1b}[31m-2 1 5 ns/op\nBenchmarkAdd-2 1 5 ns/op\n",
        ),
    ]);
    std::fs::create_dir(files.path("folder")).expect("a folder");
    for bad in [
        "deep.json",
        "huge.json",
        "nan.json",
        "least.json",
        "folder",
        "/dev/zero",
    ] {
        let (status, stdout, stderr) = files.compare(&["good.txt", bad]);
        assert_eq!((status, stdout.as_str()), (Some(1), ""), "{bad}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{bad}: {stderr}");
        assert!(stderr.contains(bad), "{bad}: {stderr}");
        assert!(stderr.len() < 500, "{bad}: {stderr}");
    }
    let (status, stdout, _) = files.compare(&["good.txt", "crlf.txt"]);
    assert_eq!(status, Some(0));
    assert!(stdout.contains("5.0000 (   0.00%)"), "{stdout}");
    let (status, stdout, _) = files.compare(&["largest.txt", "good.txt"]);
    assert_eq!(status, Some(0));
    assert!(stdout.contains("100.00%"), "{stdout}");
    let (_, stdout, _) = files.compare(&["escape.txt", "escape.txt"]);
    assert!(!stdout.contains('\u{1b}'), "{stdout}");
}

/// A million series are compared, in time that grows with them only.
#[test]
fn a_million_points_are_compared() {
    use std::fmt::Write;
    let mut text = String::new();
    for number in 0..1_000_000 {
        let _ = writeln!(text, "BenchmarkAdd{number}-2 1 {}.5 ns/op", number % 7 + 1);
    }
    let files = Files::new(&[("many.txt", &text)]);
    let (status, stdout, stderr) = files.compare(&["many.txt", "many.txt"]);
    assert_eq!((status, stderr.as_str()), (Some(0), ""));
    assert!(
        stdout.contains("1000000 of one value only"),
        "{}",
        &stdout[stdout.len() - 500..]
    );
}

/// The first sleeps longer than the second by far more than any machine adds.
#[test]
fn workloads_are_timed_in_turn_and_compared() {
    let files = Files::new(&[]);
    let log = files.path("log");
    let log = log.to_str().expect("text");
    let slow = format!("echo a >>{log}; sleep 0.2");
    let fast = format!("echo b >>{log}");
    let arguments = [
        "--workload",
        &slow,
        "--workload",
        &fast,
        "--rounds",
        "3",
        "--names",
        "slow,fast",
        "--json",
        "times.json",
    ];
    let (status, stdout, stderr) = files.compare(&arguments);
    assert_eq!(status, Some(0), "{stderr}");
    let order: String = std::fs::read_to_string(log).expect("a log");
    let order: Vec<&str> = order.split_whitespace().collect();
    // A warm-up of each, and then the first, the second, the first once more, and backwards.
    let round = "a b a a b a";
    assert_eq!(order.join(" "), format!("a b {round} {round} {round}"));
    for part in [
        "slow                    fast",
        "Amean     elapsed s",
        "\nElapsed  ",
        "  elapsed: faster, 0.0",
    ] {
        assert!(stdout.contains(part), "{part} is missing in\n{stdout}");
    }
    let saved = std::fs::read_to_string(files.path("times.json")).expect("a file");
    let saved = countersink_harness::result::Results::from_json(&saved).expect("results");
    let points = &saved.experiments[0].points;
    assert!(points.iter().any(|point| point.op == "elapsed"
        && point.variant == slow
        && point.unit == "s"
        && point.samples.len() == 6));
}

#[test]
fn workloads_that_fail_are_one_sentence() {
    let files = Files::new(&[("a.txt", "BenchmarkAdd-2 1 5 ns/op\n")]);
    for (arguments, status, sentence) in [
        (
            &["--workload", "true", "--workload", "exit 3"][..],
            1,
            "`exit 3` ended with exit status: 3",
        ),
        (
            &["--workload", "true", "--workload", "kill -9 $$"],
            1,
            "`kill -9 $$` ended with signal: 9",
        ),
        (&["--workload", "true"], 1, "nothing to be compared with"),
        (
            &[
                "--workload",
                "true",
                "--workload",
                "true",
                "--json",
                "no/such/file",
            ],
            1,
            "cannot write",
        ),
        (
            &["a.txt", "a.txt", "--workload", "true"],
            2,
            "cannot be used with",
        ),
        (
            &["a.txt", "a.txt", "--rounds", "3"],
            2,
            "cannot be used with",
        ),
    ] {
        let (ended, stdout, stderr) = files.compare(arguments);
        assert_eq!(
            (ended, stdout.as_str()),
            (Some(status), ""),
            "{arguments:?}: {stderr}"
        );
        assert!(stderr.contains(sentence), "{arguments:?}: {stderr}");
    }
}

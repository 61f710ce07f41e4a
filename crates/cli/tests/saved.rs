//! `countersink render` and `report` on results that were saved, as they should be and as they should not.

use std::path::Path;

use assert_cmd::Command;

const FORMATS: [&str; 7] = ["csv", "go", "markdown", "text", "json", "svg", "plot"];
const EXPERIMENTS: [&str; 7] = [
    "local",
    "local-fixed",
    "span",
    "batch",
    "rwsem",
    "check-before-set",
    "of tomorrow",
];

/// Status, standard output and standard error.
fn run(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::cargo_bin("countersink").expect("the command is built");
    let output = command.current_dir(folder).args(arguments).output();
    let output = output.expect("it starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// Chooses among what is usual and what is odd.
struct Choices(u64);

impl Choices {
    fn of<'a>(&mut self, among: &[&'a str]) -> &'a str {
        // xorshift64
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        among[(self.0 % among.len() as u64) as usize]
    }

    fn point(&mut self) -> String {
        let names = [
            "percpu",
            "plain",
            "atomic",
            "rwsem",
            "checked",
            "",
            "</script><script>alert(1)</script>",
            "\\u001b[31m\\u202e",
            "a name that is so long that nobody would want to see it in a table, and goes on for ever and ever",
        ];
        let patterns = [
            "hot",
            "shared",
            "strided",
            "one lock",
            "hot-span",
            "page-tables",
            "1 MiB, with a reader, 95 % stay",
            "99999999999999999999 MiB, 5 % stay",
            "-1 KiB, values stay",
            ",",
            "\\u0000",
        ];
        let values = [
            "[]",
            "[1.0]",
            "[1.0,1.1,0.9,1.0,1.2,1.0,1.1,1.0,0.9,1.0,1.0,1.0]",
            "[0.0,0.0,0.0,0.0,0.0,0.0]",
            "[-1.0,2.0,-3.0,4.0,5.0,6.0]",
            "[1e308,1e308,1e308,1e308,1e308,1e308]",
            "[5e-324,1e-300,5e-324,1.0,1e300,1e308]",
        ];
        let numbers = ["1.0", "0.0", "-1.0", "1e308", "5e-324", "2.5"];
        let summary = |choices: &mut Self| {
            format!(
                r#"{{"mean":{},"median":{},"stddev":{},"min":{},"max":{},"ci95":{}}}"#,
                choices.of(&numbers),
                choices.of(&numbers),
                choices.of(&numbers),
                choices.of(&numbers),
                choices.of(&numbers),
                choices.of(&[
                    "null",
                    "[0.9,1.1]",
                    "[1.1,0.9]",
                    "[-1e308,1e308]",
                    "[0.0,0.0]"
                ]),
            )
        };
        format!(
            r#"{{"variant":"{}","op":"{}","pattern":"{}","threads":{},"unit":"{}","mode":"{}","pinned":{},"oversubscribed":{},"wall":{},"thread":{},"fairness":{},"samples":{},"processes":{},"surroundings":{}}}"#,
            self.of(&names),
            self.of(&["inc", "read", "write", "add", "", "virt_to_page", "a/b"]),
            self.of(&patterns),
            self.of(&["1", "2", "2", "0", "4096", "18446744073709551615"]),
            self.of(&["ns/op", "ns/op", "", "furlongs"]),
            self.of(&["timed", "timed", "fixed"]),
            self.of(&["true", "false"]),
            self.of(&["true", "false"]),
            summary(self),
            self.of(&["null"]),
            self.of(&numbers),
            self.of(&values),
            self.of(&["1", "6", "0", "18446744073709551615"]),
            self.of(&[
                "[]",
                r#"[{"disturbed":["steal"]},{"disturbed":["of tomorrow"]}]"#
            ]),
        )
    }

    fn experiment(&mut self) -> String {
        let points: Vec<String> = (0..12).map(|_| self.point()).collect();
        let noise = self.of(&[
            "[]",
            r#"[{"variant":"percpu","op":"inc","pattern":"hot","threads":1,"samples":[1.0,0.0,-1.0,1e308,1.0,1.0]}]"#,
        ]);
        format!(
            r#"{{"name":"{}","partial":{},"points":[{}],"noise":{noise}}}"#,
            self.of(&EXPERIMENTS),
            self.of(&["true", "false"]),
            points.join(",")
        )
    }

    fn results(&mut self) -> String {
        let experiments: Vec<String> = (0..3).map(|_| self.experiment()).collect();
        let machine = self.of(&[
            "{}",
            r#"{"cpu_model":"<b>CPU</b>\u001b[0m","kernel":"","conditions":{"mechanism":"\u0007"}}"#,
        ]);
        format!(
            r#"{{"schema":"countersink-results/1","machine":{machine},"experiments":[{}]}}"#,
            experiments.join(",")
        )
    }
}

/// Whatever it says, it ends as a command should: with the text, or with one sentence.
fn ends_well(what: &str, (status, _, stderr): &(Option<i32>, String, String)) {
    match status {
        Some(0) => {}
        Some(1) => assert_eq!(stderr.lines().count(), 1, "{what}: {stderr}"),
        other => panic!("{what}: {other:?}: {stderr}"),
    }
    assert!(stderr.len() < 500, "{what}: {stderr}");
    assert!(!stderr.contains('\u{1b}'), "{what}: {stderr}");
}

#[test]
fn odd_results_are_shown_or_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let mut shown = 0;
    for seed in 1..=40 {
        println!("seed {seed}");
        let text = Choices(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed)).results();
        std::fs::write(folder.join("odd.json"), &text).expect("written");
        for format in FORMATS {
            let mut arguments = vec!["render", "odd.json", "--format", format];
            if format == "svg" {
                arguments.extend(["-o", "pictures"]);
            }
            let found = run(folder, &arguments);
            ends_well(&format!("render --format {format}, seed {seed}"), &found);
            // Those are for programs, and hold what the file holds.
            if !["json", "csv", "go"].contains(&format) {
                assert!(!found.1.contains('\u{1b}'), "{format}, seed {seed}");
            }
            shown += usize::from(found.0 == Some(0));
        }
        let found = run(folder, &["report", "odd.json", "-o", "report.html"]);
        ends_well(&format!("report, seed {seed}"), &found);
        if found.0 == Some(0) {
            let page = std::fs::read_to_string(folder.join("report.html")).expect("a page");
            assert!(!page.contains("<script>alert"), "seed {seed}");
            assert!(!page.contains("<b>CPU"), "seed {seed}");
            shown += 1;
        }
    }
    assert!(shown > 0, "nothing was shown of anything");
    println!("{shown} were shown");
}

#[test]
fn what_is_no_result_is_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::create_dir(folder.join("folder")).expect("a folder");
    let nan = Choices(1)
        .results()
        .replacen("\"fairness\":", "\"fairness\":NaN,\"x\":", 1);
    std::fs::write(folder.join("nan.json"), nan).expect("written");
    std::fs::write(
        folder.join("cut.json"),
        "{\"schema\":\"countersink-results/1\",",
    )
    .expect("written");
    for bad in [
        "folder",
        "nan.json",
        "cut.json",
        "missing.json",
        "/dev/zero",
    ] {
        for arguments in [
            &["render", bad, "--format", "svg", "-o", "pictures"][..],
            &["render", bad, "--format", "text"],
            &["report", bad, "-o", "report.html"],
        ] {
            let (status, stdout, stderr) = run(folder, arguments);
            assert_eq!(
                (status, stdout.as_str()),
                (Some(1), ""),
                "{arguments:?}: {stderr}"
            );
            assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
        }
    }
    assert!(
        !folder.join("report.html").exists(),
        "a page of nothing was written"
    );
}

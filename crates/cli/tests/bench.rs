//! `countersink bench` as a user types it.

use std::path::Path;

use assert_cmd::Command;

fn bench(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("countersink").expect("the command is built");
    command.arg("bench").args(arguments);
    command
}

/// Runs it, and returns status, standard output and standard error.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = bench(arguments).output().expect("it starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn wrong_usage_is_said_with_status_2() {
    for (arguments, said) in [
        (&["nonsense"][..], "invalid value 'nonsense'"),
        (&["--threads", "0"], "at least one thread is needed"),
        (&["--threads", "1,x"], "not a number of threads"),
        (&["--threads", ""], "not a number of threads"),
        (&["--threads", "1000000"], "at most"),
        (&["--quick", "--full"], "cannot be used with"),
        (&["--nonsense"], "unexpected argument"),
        (&["rwsem", "--readers", "101"], "101 is not in 0..=100"),
        (&["rwsem", "--op", "lock"], "invalid value 'lock'"),
        (&["rwsem", "--load", "-1"], "unexpected argument"),
    ] {
        let (status, stdout, stderr) = run(arguments);
        assert_eq!(status, Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(said), "{arguments:?}: {stderr}");
        assert_eq!(stdout, "");
    }
}

#[test]
fn a_result_file_that_cannot_be_written_is_said_before_anything_is_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let as_text = |path: &Path| path.to_str().expect("a text path").to_owned();
    let in_nothing = as_text(&folder.path().join("nothing/results.json"));
    let a_folder = as_text(folder.path());
    for path in [&in_nothing, &a_folder] {
        let (status, stdout, stderr) = run(&["--quick", "--json", path]);
        assert_eq!(status, Some(1), "{stderr}");
        assert!(stderr.starts_with("countersink: cannot write"), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert_eq!(stdout, "", "nothing was measured");
    }
    let left = std::fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(left, 0, "no file is left behind");
}

/// What a run on one CPU printed, and its points.
#[cfg(target_os = "linux")]
fn run_on_one_cpu(arguments: &[&str]) -> (String, serde_json::Value) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("results.json");
    let binary = assert_cmd::cargo::cargo_bin("countersink");
    let mut command = std::process::Command::new(binary);
    command
        .arg("bench")
        .args(arguments)
        .arg("--json")
        .arg(&path);
    one_cpu::restrict(&mut command);
    let output = command.output().expect("it starts");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("may use one CPU only"), "{stderr}");
    assert!(!stdout.contains("2 threads"), "{stdout}");
    let text = std::fs::read_to_string(&path).expect("results");
    let results: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(results["schema"], "countersink-results/1");
    assert!(results["machine"]["conditions"]["mechanism"].is_string());
    (stdout.into_owned(), results["experiments"][0].clone())
}

#[cfg(target_os = "linux")]
fn assert_parts(stdout: &str, parts: &[&str]) {
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in parts {
        assert!(
            squeezed(stdout).contains(&squeezed(part)),
            "{part} is missing in\n{stdout}"
        );
    }
}

/// The main job, on one CPU, so that it also shows what is said there.
#[cfg(target_os = "linux")]
#[test]
fn a_run_on_one_cpu_prints_its_tables_and_says_what_it_cannot_show() {
    let (stdout, local) = run_on_one_cpu(&["local", "--quick", "--published"]);
    assert_parts(
        &stdout,
        &[
            "inc        add  add_return  cpu_local_inc",
            "trivalue 24 MB",
            "LocalCount is ",
            "percpu / plain, inc rotating",
            "percpu / atomic, inc shared, 1 thread:",
            "Sums of the counters",
            "orderings, irqsave as deferred",
        ],
    );
    let points = local["points"].as_array().expect("points");
    // 7 strided variants in 4 columns, 8 in the three patterns with a floor, 3 shared in 4 columns.
    assert_eq!(points.len(), 4 * 7 + 3 * 8 + 4 * 3);
    for point in points {
        assert_eq!(point["unit"], "ns/op");
        assert!(point["samples"].as_array().expect("samples").len() >= 12);
        assert!(point["wall"]["ci95"].is_array());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn spans_on_one_cpu_print_look_ups_costs_and_page_tables() {
    let (stdout, span) = run_on_one_cpu(&["span", "--quick"]);
    assert_parts(
        &stdout,
        &[
            "hot: everything is in the first-level cache",
            "kfree_virt_to_page events total(min/avg/max)",
            "sparsemem / virtual memmap, averages:",
            "virtual memmap 598430 5.6ms(3ns/9ns/322ns)",
            "longest, 322ns before 28.7us",
            "counter / percpu, hot, 1 thread:",
            "span / clock-pair, hot, 1 thread:",
        ],
    );
    let points = span["points"].as_array().expect("points");
    let of = |op: &str, pattern: &str| {
        let here = |point: &&serde_json::Value| point["op"] == op && point["pattern"] == pattern;
        points.iter().filter(here).count()
    };
    // By the harness's clock, and by the spans.
    for pattern in ["hot", "hot-span"] {
        assert_eq!(of("virt_to_page", pattern), 3);
        assert_eq!(of("virt_to_page+use", pattern), 2);
    }
    assert_eq!((of("count", "hot"), of("count", "rotating")), (7, 2));
    assert!(of("time", "hot") >= 6);
    // Where a limit keeps address space away, that is said instead.
    if !stdout.contains("timed: ") {
        assert_eq!(of("page_touch", "page-tables"), 1);
        assert_eq!(of("pgd_free", "page-tables"), 1);
        assert_parts(
            &stdout,
            &["pte_alloc - page_touch:", "pte_free - page_unmap:"],
        );
    }
    for point in points {
        assert_eq!(point["unit"], "ns/op");
        assert!(point["samples"].as_array().expect("samples").len() >= 12);
        assert!(point["wall"]["ci95"].is_array());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn bounded_counters_on_one_cpu_print_costs_accuracy_and_sizes() {
    let (stdout, batch) = run_on_one_cpu(&["batch", "--quick", "--size"]);
    assert_parts(
        &stdout,
        &[
            "batch 1 batch 8 batch 32 batch 128 batch 1024",
            "Reading, while nobody adds",
            "carry / percpu, batch 32, 1 thread:",
            "carry / kernel, batch 1024, mixed, 1 thread:",
            "carry, read, 1 thread:",
            "How far reads are off while 1 thread adds",
            "reads farthest promised further",
            "a call site bytes of 33",
            "carry-static, 33 call sites in line instead of by call: Total: Before=",
        ],
    );
    // Nothing was further off than promised, and every size is of something.
    let rows_after = |heading: &str| {
        let below = stdout.split_once(heading).expect("a table").1;
        let rows = below.lines().skip(1).take_while(|row| !row.is_empty());
        rows.map(str::to_owned).collect::<Vec<_>>()
    };
    let accuracy = rows_after("promised  further");
    assert_eq!(accuracy.len(), 6, "{accuracy:?}");
    assert!(accuracy.iter().all(|row| row.ends_with(" 0")), "{stdout}");
    let sizes = rows_after("bytes of 33");
    assert_eq!(sizes.len(), 9, "{sizes:?}");
    assert!(!sizes.iter().any(|row| row.ends_with(" 0")), "{stdout}");
    let points = batch["points"].as_array().expect("points");
    // 8 variants at 5 batches by ones, 9 by mixed amounts, 5 that read.
    assert_eq!(points.len(), 5 * 8 + 5 * 9 + 5);
    for point in points {
        assert_eq!(point["unit"], "ns/op");
        assert!(point["samples"].as_array().expect("samples").len() >= 12);
        assert!(point["wall"]["ci95"].is_array());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn locks_on_one_cpu_print_rates_fairness_and_events() {
    let (stdout, rwsem) = run_on_one_cpu(&[
        "rwsem",
        "--quick",
        "--threads",
        "1,3",
        "--op",
        "try-read,mixed",
        "--readers",
        "50,100",
        "--load",
        "3",
        "--gap",
        "2",
        "--disasm",
        "--published",
    ]);
    assert_parts(
        &stdout,
        &[
            "With the lock: 3 additions,",
            "ns/op kops/s fairness",
            "try-read, 1 thread",
            "mixed, 50 % readers, 3 threads (more than CPUs)",
            "mixed, 100 % readers, 1 thread",
            "rwsem-load-first / ",
            "What it costs to count events",
            "rwsem-ownership-first / rwsem-load-first, try-read, 1 thread:",
            "before: the word is loaded first: ",
            "after: ownership is tried for first: ",
            "threads x86-64, 2019: before after change ARM64, 2019: before after change here: before",
            "8 5664 7190 +26.9 % 2641 1603 -39.3 %",
        ],
    );
    // As the seed prints them; alone, each attempt is the first, and none fails.
    assert!(
        stdout
            .lines()
            .any(|line| line.starts_with("rwsem_rtrylock=")),
        "{stdout}"
    );
    #[cfg(target_arch = "x86_64")]
    if !stdout.contains("not known") {
        assert_parts(&stdout, &["lock cmpxchg [rdi],"]);
    }
    let points = rwsem["points"].as_array().expect("points");
    assert_eq!(points.len(), 2 * (10 + 2 * 8));
    for point in points {
        assert_eq!(point["unit"], "ns/op");
        assert!(point["fairness"].as_f64().expect("a number") >= 0.0);
    }
    let conditions = |stdout: &str| stdout.lines().any(|line| line.starts_with("PercpuRwSem"));
    assert!(conditions(&stdout), "{stdout}");
}

#[cfg(target_os = "linux")]
#[test]
fn looking_before_setting_prints_a_sentence_and_a_plot() {
    let folder = tempfile::tempdir().expect("a folder");
    let plot = folder.path().join("plot.svg");
    let plot_text = plot.to_str().expect("text");
    let binary = assert_cmd::cargo::cargo_bin("countersink");
    let mut command = std::process::Command::new(binary);
    let json = folder.path().join("results.json");
    command.args([
        "bench",
        "check-before-set",
        "--quick",
        "--plot",
        plot_text,
        "--json",
    ]);
    let output = command.arg(&json).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_parts(
        &stdout,
        &[
            "write, 32 KiB, values change",
            "write, 16 MiB, values stay",
            "On this machine, looking before setting pays",
        ],
    );
    let svg = std::fs::read_to_string(&plot).expect("a plot");
    assert!(svg.starts_with("<svg") && svg.contains("a writer alone, 32 KiB"));
    let results = std::fs::read_to_string(&json).expect("results");
    let results: serde_json::Value = serde_json::from_str(&results).expect("JSON");
    let points = results["experiments"][0]["points"]
        .as_array()
        .expect("points");
    for point in points {
        assert_eq!(point["samples"].as_array().expect("samples").len(), 12);
    }
    // Alone: two sizes at least with two kinds of values, and two sweeps of 13 shares; each plain and checked.
    assert!(points.len() >= 2 * (4 + 26), "{}", points.len());
    let nowhere = run(&[
        "check-before-set",
        "--quick",
        "--plot",
        "/no/such/folder/plot.svg",
    ]);
    assert_eq!(nowhere.0, Some(1), "{nowhere:?}");
    assert_eq!(nowhere.1, "", "nothing was measured");
}

#[cfg(target_os = "linux")]
mod one_cpu {
    #![allow(unsafe_code)]

    use std::os::unix::process::CommandExt;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    /// Lets a command run on one of the CPUs that this process may use.
    pub(super) fn restrict(command: &mut std::process::Command) {
        let allowed = sched_getaffinity(None).expect("the allowed CPUs");
        let first = (0..CpuSet::MAX_CPU)
            .find(|cpu| allowed.is_set(*cpu))
            .expect("a CPU");
        let mut one = CpuSet::new();
        one.set(first);
        // SAFETY: a system call between fork and exec, which is all that may be done there.
        unsafe { command.pre_exec(move || Ok(sched_setaffinity(None, &one)?)) };
    }
}

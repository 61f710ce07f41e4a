//! `countersink workload` as a user types it.
#![cfg(all(target_os = "linux", not(countersink_portable)))]

mod demo;

use std::io::Read;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use demo::{countersink, printed, run};

/// As short as can be.
const SHORT: [&str; 6] = ["--duration", "0.02", "--warm-up", "0.001", "--samples", "2"];

fn workload(arguments: &[&str]) -> std::process::Command {
    let mut command = countersink(&["workload"]);
    command.args(arguments);
    command
}

#[test]
fn every_workload_runs_as_processes_and_as_threads() {
    for name in ["openneg", "pft", "pipe", "sched_yield", "getppid"] {
        let text = printed(workload(&[name, "--tasks", "1,2"]).args(SHORT));
        for title in ["1 process", "1 thread", "2 processes", "2 threads"] {
            assert!(text.contains(&format!("\n{name}, {title}")), "{text}");
        }
    }
}

/// What each counter holds is compared with what the tasks did; otherwise the command fails.
#[test]
fn counters_take_turns_and_count_everything() {
    let counters = "none,carry,kernel,masked,atomic";
    let arguments = ["getppid", "--tasks", "2", "--counter", counters];
    let text = printed(workload(&arguments).args(SHORT));
    for counter in counters.split(',') {
        let rows = text
            .lines()
            .filter(|line| line.split(' ').next() == Some(counter));
        assert_eq!(rows.count(), 2, "{counter} in {text}");
    }
    // Two samples are too few to tell.
    assert_eq!(text.matches(": cannot tell").count(), 8, "{text}");
}

#[test]
fn results_are_written_as_columns_and_as_json() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let file = path("results.json");
    let to = directory.path().display().to_string();
    let arguments = ["pipe", "--tasks", "1..2", "--csv", &to, "--json", &file];
    printed(workload(&arguments).args(SHORT));
    let columns = std::fs::read_to_string(path("pipe.csv")).expect("columns");
    let rows: Vec<Vec<&str>> = columns
        .lines()
        .map(|row| row.split(',').collect())
        .collect();
    let head = [
        "tasks",
        "processes",
        "processes_idle",
        "threads",
        "threads_idle",
        "linear",
    ];
    assert_eq!(rows[0], head);
    assert_eq!(rows[1], ["0", "0", "100", "0", "100", "0"]);
    assert_eq!((rows[2][0], rows[3][0], rows.len()), ("1", "2", 4));
    for row in &rows[2..] {
        let number = |at: usize| row[at].parse::<f64>().expect("a number");
        assert!(number(1) > 0.0 && number(3) > 0.0 && number(5) > 0.0);
        assert!((0.0..=100.0).contains(&number(2)));
    }
    let title = std::fs::read_to_string(path("pipe.title")).expect("a title");
    assert_eq!(title, "pipe read/write\n");
    let results = std::fs::read_to_string(file).expect("results");
    let results: serde_json::Value = serde_json::from_str(&results).expect("JSON");
    let points = results["experiments"][0]["points"]
        .as_array()
        .expect("points");
    assert_eq!(points.len(), 4);
    assert_eq!(points[0]["pattern"], "processes");
    assert_eq!(points[3]["threads"], 2);
}

/// A workload that runs until it is killed.
struct Running(Child);

impl Running {
    /// With samples of so many seconds.
    fn start(mode: &str, seconds: &str) -> Self {
        let arguments = ["getppid", "--tasks", "2", "--mode", mode];
        let mut command = workload(&arguments);
        command.args(["--duration", seconds, "--samples", "2"]);
        let piped = command.stdout(Stdio::null()).stderr(Stdio::piped());
        Running(piped.spawn().expect("it starts"))
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// Processes that it has forked.
    fn children(&self) -> Vec<u32> {
        let pid = self.pid();
        let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let text = text.unwrap_or_default();
        text.split_whitespace()
            .map(|pid| pid.parse().expect("a pid"))
            .collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Tries until there is something; a minute is no measure of speed.
fn wait_for<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(Instant::now() < end, "no {what}");
        std::thread::yield_now();
    }
}

#[test]
fn what_tasks_count_is_shown_while_they_run() {
    for mode in ["processes", "threads"] {
        let running = Running::start(mode, "3000");
        let operations = || {
            let output = countersink(&["show", &running.pid(), "--json"]).output();
            let output = output.expect("it runs");
            let shown: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
            let metrics = shown["regions"][0]["metrics"].as_array()?.clone();
            let named = |metric: &&serde_json::Value| metric["name"] == "workload_operations";
            metrics.iter().find(named)?["value"].as_u64()
        };
        let first = wait_for("operations", || operations().filter(|counted| *counted > 0));
        wait_for("more of them", || {
            operations().filter(|counted| *counted > first)
        });
    }
}

fn two_tasks(running: &Running) -> Vec<u32> {
    wait_for("two tasks", || {
        Some(running.children()).filter(|children| children.len() == 2)
    })
}

fn wait_until_gone(pid: u32) {
    wait_for("end of a task", || {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok();
        let alive = state.is_some_and(|state| !state.contains(") Z "));
        (!alive).then_some(())
    });
}

#[test]
fn tasks_end_with_whoever_runs_them() {
    // At once, while the second may not have asked yet to be told.
    for _ in 0..30 {
        let mut running = Running::start("processes", "3000");
        let tasks = two_tasks(&running);
        running.0.kill().expect("it lives");
        running.0.wait().expect("it ends");
        tasks.into_iter().for_each(wait_until_gone);
    }
}

#[test]
fn a_task_that_was_killed_is_told() {
    let mut running = Running::start("processes", "4");
    let tasks = two_tasks(&running);
    let second = rustix::process::Pid::from_raw(tasks[1] as i32).expect("a pid");
    rustix::process::kill_process(second, rustix::process::Signal::KILL).expect("it lives");
    assert_eq!(running.0.wait().expect("it ends").code(), Some(1));
    let mut told = String::new();
    let stderr = running.0.stderr.take().expect("a pipe");
    std::io::BufReader::new(stderr)
        .read_to_string(&mut told)
        .expect("text");
    assert_eq!(told, "countersink: task 1 died, killed by signal 9\n");
    wait_until_gone(tasks[0]);
}

#[test]
fn what_cannot_be_run_is_one_sentence() {
    for (arguments, status, sentence) in [
        (
            &["pipe", "--tasks", "0"][..],
            2,
            "at least one task is needed",
        ),
        (&["pipe", "--tasks", "3..1"], 2, "3..1 goes down"),
        (
            &["pipe", "--samples", "3"],
            2,
            "an even number from 2 to 1000",
        ),
        (
            &["pipe", "--duration", "0"],
            2,
            "from 0.001 to 3600 seconds",
        ),
        (
            &["pipe", "--csv", "/nonexistent"],
            1,
            "cannot write to /nonexistent",
        ),
        (&["pipe", "--json", "/nonexistent/x"], 1, "cannot write"),
    ] {
        let (ended, stdout, stderr) = run(&mut workload(arguments));
        assert_eq!((ended, stdout.as_str()), (Some(status), ""), "{stderr}");
        assert!(stderr.contains(sentence), "{stderr}");
    }
}

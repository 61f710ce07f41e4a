//! `countersink show` as a user types it, of a real program.
#![cfg(all(target_os = "linux", target_arch = "x86_64", not(countersink_portable)))]

mod demo;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use demo::{
    Demo, ROUNDS, countersink, json, line as line_of, metric, only_file, printed, private_folder,
    refused, run,
};

#[test]
fn all_kinds_are_shown_with_exact_totals() {
    let demo = Demo::done();
    let text = printed(&mut countersink(&["show", &demo.pid()]));
    let line = |name: &str| line_of(&text, name);
    assert!(
        text.starts_with(&format!("program    demo (pid {}; alive)\n", demo.pid())),
        "{text}"
    );
    assert!(text.contains(", never reset\n"), "{text}");
    assert_eq!(line("demo_requests"), "2000");
    assert_eq!(line("demo_sent"), "1100000 1.1mb");
    assert_eq!(line("demo_threads"), "2");
    assert_eq!(line("demo_methods{method=\"GET\"}"), "1500");
    assert_eq!(line("demo_cache_miss"), "500");
    assert!(line("demo_size").starts_with("2000 550b "), "{text}");
    assert!(
        text.contains("\ngroup demo_cache\ndemo_cache_hit "),
        "{text}"
    );
    // Every second event had 100, 300, 500, 700 or 900 bytes; the others had none, and are not in
    // the average.
    let answer = line("demo_answer");
    assert!(answer.starts_with("2000 "), "{answer}");
    assert!(answer.ends_with(") 500kb(100b/500b/900b)"), "{answer}");
    assert!(line("demo_lookup").contains(" p50/p90/p99 "), "{text}");
    assert!(!text.contains("migrated"), "{text}");
    let text = printed(&mut countersink(&["show", &demo.pid(), "--migrated"]));
    assert_eq!(text.matches(" migrated ").count(), 2, "{text}");
}

#[test]
fn json_has_raw_integers() {
    let demo = Demo::done();
    let shown = json(&mut countersink(&["show", &demo.pid(), "--json"]));
    assert_eq!(shown["schema"], "countersink-show/1");
    assert_eq!(shown["regions"].as_array().map(Vec::len), Some(1));
    assert_eq!(shown["regions"][0]["state"], "alive");
    assert_eq!(metric(&shown, "demo_requests")["value"], 2 * ROUNDS);
    let sent = metric(&shown, "demo_sent");
    assert_eq!(
        (&sent["value"], &sent["unit"]),
        (&1_100_000.into(), &"bytes".into())
    );
    let threads = metric(&shown, "demo_threads");
    assert_eq!((&threads["low"], &threads["high"]), (&2.into(), &2.into()));
    let answer = metric(&shown, "demo_answer");
    assert_eq!(
        (&answer["events"], &answer["byte_events"]),
        (&2000.into(), &1000.into())
    );
    let lookup = &metric(&shown, "demo_lookup")["histogram_ticks"];
    let buckets = lookup["buckets"].as_array().expect("buckets");
    let counts = buckets
        .iter()
        .map(|bucket| bucket[2].as_u64().expect("a count"));
    assert_eq!(counts.sum::<u64>(), 2 * ROUNDS);
    assert_eq!(shown["regions"][0]["problems"], serde_json::json!([]));
}

#[test]
fn lanes_add_up() {
    let demo = Demo::done();
    let shown = json(&mut countersink(&[
        "show",
        &demo.pid(),
        "--json",
        "--per-cpu",
    ]));
    let lanes = metric(&shown, "demo_requests")["lanes"]
        .as_array()
        .expect("lanes");
    let values = lanes
        .iter()
        .map(|lane| lane["value"].as_u64().expect("a value"));
    assert_eq!(values.sum::<u64>(), 2 * ROUNDS);
    let cpus = shown["regions"][0]["cpus"].as_u64().expect("a number");
    let of_lane = |lane: String| {
        let arguments = ["show", &demo.pid(), "--json", "--cpu", &lane];
        let shown = json(&mut countersink(&arguments));
        metric(&shown, "demo_requests")["value"]
            .as_u64()
            .expect("a value")
    };
    let each: u64 = (0..cpus).map(|cpu| of_lane(cpu.to_string())).sum();
    assert_eq!(each + of_lane("shared".to_owned()), 2 * ROUNDS);
    let table = printed(&mut countersink(&["show", &demo.pid(), "--per-cpu"]));
    let rows = table
        .lines()
        .filter(|line| line.starts_with("demo_requests "));
    let values = rows.map(|row| row.split_whitespace().nth(2).expect("a value"));
    assert_eq!(
        values
            .map(|v| v.parse::<u64>().expect("a number"))
            .sum::<u64>(),
        2 * ROUNDS
    );
    let none = refused(&mut countersink(&["show", &demo.pid(), "--cpu", "9999"]));
    assert!(
        none.starts_with("there is no lane of CPU 9999: demo has lanes of CPUs 0 to "),
        "{none}"
    );
}

#[test]
fn metrics_are_chosen_and_sorted() {
    let demo = Demo::done();
    let names = |arguments: &[&str]| -> Vec<String> {
        let pid = demo.pid();
        let all = [&["show", &pid, "--json"], arguments].concat();
        let shown = json(&mut countersink(&all));
        let metrics = shown["regions"][0]["metrics"]
            .as_array()
            .expect("metrics")
            .clone();
        let name = |metric: &serde_json::Value| metric["name"].as_str().expect("a name").to_owned();
        metrics.iter().map(name).collect()
    };
    assert_eq!(
        names(&["--filter", "cache"]),
        ["demo_cache_hit", "demo_cache_miss"]
    );
    assert_eq!(names(&["--filter", "*_s*"]), ["demo_sent", "demo_size"]);
    assert_eq!(names(&["--filter", "nothing"]).len(), 0);
    let by_value = names(&["--filter", "cache", "--sort", "value"]);
    assert_eq!(by_value, ["demo_cache_hit", "demo_cache_miss"]);
    assert_eq!(names(&["--sort", "value"])[0], "demo_sent");
    let text = printed(&mut countersink(&[
        "show",
        &demo.pid(),
        "--filter",
        "nothing",
    ]));
    assert!(text.ends_with("\nno metric passes the filter\n"), "{text}");
}

#[test]
fn a_program_is_found_by_name() {
    // A name of its own, since other tests run the same program.
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("a-demo-with-a-long-name");
    std::os::unix::fs::symlink(demo::program(), &program).expect("linked");
    let start = || Demo::start(std::process::Command::new(&program).arg("1"));
    let (one, two) = (start(), start());
    let text = printed(&mut countersink(&["show", "a-demo-with-a-long-name"]));
    for demo in [&one, &two] {
        assert!(
            text.contains(&format!("pid {}; alive", demo.pid())),
            "{text}"
        );
    }
}

#[test]
fn a_region_that_is_shared_is_said_to_be() {
    let shared = countersink::region::Shared::new().expect("a region");
    let start = || {
        let mut command = std::process::Command::new(demo::program());
        Demo::start(command.arg("1").env("COUNTERSINK_REGION", shared.path()))
    };
    let (one, two) = (start(), start());
    // This process made it, and has it too.
    let mut pids = [&one, &two]
        .map(|demo| demo.pid().parse::<u32>().expect("a number"))
        .to_vec();
    pids.push(std::process::id());
    pids.sort_unstable();
    let numbers: Vec<String> = pids.iter().map(u32::to_string).collect();
    let text = printed(&mut countersink(&["show", &one.pid()]));
    assert!(
        text.contains(&format!("(pids {}; alive)\n", numbers.join(", "))),
        "{text}"
    );
    assert!(
        text.contains("\nshared     by 3 processes; the figures are of all\n"),
        "{text}"
    );
    assert_eq!(line_of(&text, "demo_requests"), "4");
    let shown = json(&mut countersink(&["show", &two.pid(), "--json"]));
    assert_eq!(shown["regions"][0]["pids"], serde_json::json!(pids));
}

#[test]
fn files_are_read_after_the_program_and_its_death() {
    let folder = private_folder();
    let demo = Demo::in_directory(folder.path());
    let file = only_file(folder.path());
    let alive = printed(&mut countersink(&["show", &demo.pid()]));
    let dead = {
        demo.kill();
        printed(&mut countersink(&["show", &file]))
    };
    for (text, state) in [(&alive, "alive"), (&dead, "dead")] {
        assert!(text.contains(&format!("; {state})\n")), "{text}");
        assert!(text.contains("\nregion     file, "), "{text}");
        assert_eq!(line_of(text, "demo_requests"), "2000");
    }
}

#[test]
fn what_a_dead_process_has_left_is_pointed_at() {
    let folder = private_folder();
    let demo = Demo::in_directory(folder.path());
    let (pid, file) = (demo.pid(), only_file(folder.path()));
    demo.kill();
    let sentence = refused(countersink(&["show", &pid]).env("COUNTERSINK_DIR", folder.path()));
    let said = format!("; an earlier process of that number has left {file}");
    assert!(sentence.ends_with(&said), "{sentence}");
    let by_name = printed(countersink(&["show", "demo"]).env("COUNTERSINK_DIR", folder.path()));
    assert!(
        by_name.contains(&format!("(made by pid {pid}; dead)")),
        "{by_name}"
    );
}

#[test]
fn rates_are_shown_until_the_program_ends() {
    let demo = Demo::counting();
    let pid = demo.pid();
    let mut watch = countersink(&["show", &pid, "--watch", "0.05"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(watch.stdout.take().expect("a pipe")).lines();
    let mut next = |start: &str| {
        let mut found = lines.by_ref().map(|line| line.expect("text"));
        found
            .find(|line| line.starts_with(start))
            .expect("such a line")
    };
    assert!(next("demo (pid").contains("): in 0."));
    next("metric ");
    next("demo_requests ");
    demo.end();
    let output = watch.wait_with_output().expect("it ends");
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, format!("countersink: demo (pid {pid}) has ended\n"));
}

#[test]
fn a_number_of_intervals_is_enough() {
    let demo = Demo::done();
    let arguments = [
        "show",
        &demo.pid(),
        "--watch",
        "0.01",
        "--count",
        "2",
        "--json",
    ];
    let text = printed(&mut countersink(&arguments));
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 2);
    for line in lines {
        assert!(
            line["interval_ns"]
                .as_u64()
                .is_some_and(|passed| passed >= 10_000_000)
        );
        assert_eq!(metric(&line, "demo_requests")["value"], 2 * ROUNDS);
        let growth = line["regions"][0]["growth"].as_array().expect("growth");
        let requests = growth
            .iter()
            .find(|metric| metric["name"] == "demo_requests");
        assert_eq!(requests.expect("it is there")["value"], 0);
    }
}

#[test]
fn ctrl_c_ends_watching_as_if_nothing_had_happened() {
    let demo = Demo::done();
    let mut watch = countersink(&["show", &demo.pid(), "--watch", "0.01"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(watch.stdout.take().expect("a pipe")).lines();
    // From here on it holds the signal back.
    lines.next().expect("a line").expect("text");
    let pid = rustix::process::Pid::from_child(&watch);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("sent");
    lines.for_each(drop);
    let output = watch.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// The number of a dead process may be another's by now.
#[test]
fn a_number_that_another_process_has_now_is_told() {
    let folder = private_folder();
    let demo = Demo::in_directory(folder.path());
    let file = only_file(folder.path());
    demo.kill();
    let mut bytes = std::fs::read(&file).expect("a region");
    let own = std::process::id();
    // Process and start time, as docs/region-format.md has them; nothing started with the machine.
    bytes[120..124].copy_from_slice(&own.to_ne_bytes());
    bytes[128..136].copy_from_slice(&0_u64.to_ne_bytes());
    std::fs::write(&file, bytes).expect("written");
    let text = printed(&mut countersink(&["show", &file]));
    let said = format!("(made by pid {own}, which is another process now; dead)");
    assert!(text.contains(&said), "{text}");
}

/// Where the kernel writes core files into the working directory, as it does by default.
#[test]
fn counters_survive_in_a_core_file() {
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    if pattern.starts_with('|') || pattern.contains(['/', '%']) {
        eprintln!("skipped: core files go elsewhere: {pattern}");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let line = format!(
        "ulimit -c unlimited && exec {} {ROUNDS}",
        demo::program().display()
    );
    let mut command = std::process::Command::new("sh");
    let demo = Demo::start(command.args(["-c", &line]).current_dir(folder.path()));
    let pid = demo.pid();
    demo.crash();
    let core = only_file(folder.path());
    let text = printed(&mut countersink(&["show", &core]));
    assert!(
        text.contains(&format!("(made by pid {pid}; dead)")),
        "{text}"
    );
    assert_eq!(line_of(&text, "demo_requests"), "2000");
    assert_eq!(line_of(&text, "demo_cache_miss"), "500");
    let sentence = refused(&mut countersink(&["reset", &core]));
    assert!(
        sentence.ends_with(" can be read, but not reset"),
        "{sentence}"
    );
}

/// A process of root's, seen by somebody.
#[test]
fn processes_of_others_are_not_looked_into() {
    let as_somebody = |arguments: &[&str]| {
        let mut command = countersink(arguments);
        if rustix::process::geteuid().is_root() {
            std::os::unix::process::CommandExt::uid(&mut command, 65_534);
        }
        command
    };
    if as_somebody(&["--version"]).output().is_err() {
        eprintln!("skipped: others may not run what is built here");
        return;
    }
    let sentence = refused(&mut as_somebody(&["show", "1"]));
    assert_eq!(
        sentence,
        "process 1 belongs to someone else, or may not be looked into"
    );
    let by_name = refused(&mut as_somebody(&["show", "no-such-program"]));
    assert!(
        by_name.contains(" processes may not be looked into)"),
        "{by_name}"
    );
    let listed = printed(&mut as_somebody(&["list"]));
    assert!(
        listed.ends_with(" processes may not be looked into\n"),
        "{listed}"
    );
}

#[test]
fn what_cannot_be_shown_is_one_sentence() {
    let own = std::process::id().to_string();
    for (target, said) in [
        ("4194304", "there is no process 4194304"),
        (
            &own,
            "has no region: it does not use countersink, or counts in private memory",
        ),
        (
            "no-such-program",
            "no program called no-such-program has a region",
        ),
        (
            "/no/such/file",
            "cannot open /no/such/file: No such file or directory",
        ),
        ("/proc/self/stat", "is not a region"),
        ("/dev/null", "is a device, not a regular file"),
        ("/", "is a directory, not a regular file"),
        ("a\u{1b}[2Jb", "no program called a\\u{1b}[2Jb has a region"),
    ] {
        let sentence = refused(&mut countersink(&["show", target]));
        assert!(sentence.contains(said), "{target}: {sentence}");
    }
}

#[test]
fn wrong_usage_has_status_2() {
    for arguments in [
        &["show"][..],
        &["show", "1", "2"],
        &["show", "1", "--cpu", "x"],
        &["show", "1", "--cpu", "0", "--per-cpu"],
        &["show", "1", "--sort", "x"],
        &["show", "1", "--watch", "0"],
        &["show", "1", "--watch", "nan"],
        &["show", "1", "--count", "3"],
        &["show", "1", "--watch", "--count", "0"],
    ] {
        let (status, stdout, stderr) = run(&mut countersink(arguments));
        assert_eq!(
            (status, stdout.as_str()),
            (Some(2), ""),
            "{arguments:?} {stderr}"
        );
    }
}

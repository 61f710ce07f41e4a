//! `countersink stat` as a user types it.
#![cfg(all(target_os = "linux", target_arch = "x86_64", not(countersink_portable)))]
#![allow(unsafe_code)]

mod demo;

use std::os::unix::process::CommandExt;

use demo::{countersink, json, printed, refused, run};

/// The demo as a shell's word, ending by itself.
fn demo(rounds: u32) -> String {
    let program = demo::program();
    format!("{} {rounds} < /dev/null > /dev/null", program.display())
}

/// The values after a heading, by name.
fn values<'a>(text: &'a str, heading: &str) -> std::collections::BTreeMap<&'a str, &'a str> {
    let mut lines = text.lines().skip_while(|line| *line != heading);
    assert_eq!(lines.next(), Some(heading), "{text}");
    let values = lines.take_while(|line| !line.is_empty());
    values
        .map(|line| line.rsplit_once('=').expect("NAME=VALUE"))
        .collect()
}

#[test]
fn each_phase_says_what_it_counted() {
    let bootup = format!("bootup={}", demo(100));
    let text = printed(&mut countersink(&[
        "stat",
        "--phase",
        &bootup,
        "--",
        "sh",
        "-c",
        &demo(300),
    ]));
    let first = values(&text, "1) After bootup:");
    assert_eq!(first["demo_requests"], "200");
    assert_eq!(first["demo_cache_miss"], "50");
    assert_eq!(first["demo_methods{method=\"GET\"}"], "150");
    assert_eq!(first["demo_answer.events"], "200");
    assert_eq!(first["demo_answer.bytes"], "50000");
    assert!(
        first["demo_answer.time_ns"]
            .parse::<u64>()
            .is_ok_and(|time| time > 0)
    );
    assert_eq!(first["demo_size.count"], "200");
    assert_eq!(first["demo_size.sum"], "110000");
    assert_eq!(first["demo_threads"], "0");
    let second = values(&text, &format!("2) After sh -c {}:", demo(300)));
    assert_eq!(
        (second["demo_requests"], second["demo_cache_hit"]),
        ("600", "450")
    );
}

/// Grandchildren at the same time.
#[test]
fn all_that_a_command_starts_counts() {
    let one = demo(50);
    let line = format!("({one}) & ({one}) & ({one}) & wait");
    let text = printed(&mut countersink(&["stat", "sh", "-c", &line]));
    let counted = values(&text, &format!("1) After sh -c {line}:"));
    assert_eq!(counted["demo_requests"], "300");
    assert_eq!(counted["demo_cache_miss"], "78");
}

#[test]
fn a_table_and_json_have_all_phases() {
    let phase = |name: &str, rounds| format!("{name}={}", demo(rounds));
    let (one, two) = (phase("one", 10), phase("two", 20));
    let both = ["stat", "--phase", &one, "--phase", &two];
    let table = printed(&mut countersink(&[&both[..], &["--table"]].concat()));
    let row = |name: &str| {
        let row = table
            .lines()
            .find(|line| line.starts_with(name))
            .expect("a row");
        row.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(row("metric"), ["metric", "one", "two"]);
    assert_eq!(row("demo_requests"), ["demo_requests", "20", "40"]);
    let shown = json(&mut countersink(&[&both[..], &["--json"]].concat()));
    assert_eq!(shown["schema"], "countersink-stat/1");
    for (phase, requests) in [(0, 20), (1, 40)] {
        let growth = shown["phases"][phase]["growth"].as_array().expect("growth");
        let found = growth
            .iter()
            .find(|metric| metric["name"] == "demo_requests");
        assert_eq!(found.expect("it is there")["value"], requests);
        assert_eq!(shown["phases"][phase]["status"], 0);
        assert!(
            shown["phases"][phase]["elapsed_ns"]
                .as_u64()
                .is_some_and(|time| time > 0)
        );
    }
}

#[test]
fn the_status_is_that_of_the_first_command_that_fails() {
    for (arguments, status) in [
        (&["stat", "true"][..], 0),
        (&["stat", "--", "sh", "-c", "exit 7"], 7),
        (&["stat", "--phase", "x=exit 3", "--", "true"], 3),
        (&["stat", "--phase", "x=true", "--", "false"], 1),
        (&["stat", "sh", "-c", "kill -KILL $$"], 137),
        (&["stat", "--json", "sh", "-c", "kill -TERM $$"], 143),
        (&["stat", "/no/such/program"], 127),
        (&["stat", "/"], 126),
    ] {
        let (found, _, stderr) = run(&mut countersink(arguments));
        assert_eq!(found, Some(status), "{arguments:?}: {stderr}");
    }
    // Nothing runs after it, and what it counted until then is there.
    let line = format!("first={}; exit 3", demo(10));
    let (status, stdout, _) = run(&mut countersink(&[
        "stat", "--phase", &line, "--", "echo", "never",
    ]));
    assert_eq!(status, Some(3));
    assert_eq!(values(&stdout, "1) After first:")["demo_requests"], "20");
    assert!(!stdout.contains("never"), "{stdout}");
}

#[test]
fn a_command_that_does_not_use_the_library_is_told() {
    let phase = format!("counts={}", demo(1));
    let arguments = ["stat", "--phase", &phase, "--phase", "not=true"];
    let (status, stdout, stderr) = run(&mut countersink(&arguments));
    assert_eq!(status, Some(0));
    assert_eq!(values(&stdout, "2) After not:")["demo_requests"], "0");
    assert!(
        stderr.starts_with("countersink: `not` and what it started have counted nothing: "),
        "{stderr}"
    );
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn numbers_can_go_to_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("numbers");
    let path = path.to_str().expect("text");
    let line = format!("echo heard; {}", demo(10));
    let arguments = ["stat", "--output", path, "sh", "-c", &line];
    assert_eq!(printed(&mut countersink(&arguments)), "heard\n");
    let text = std::fs::read_to_string(path).expect("written");
    let counted = values(&text, &format!("1) After sh -c {line}:"));
    assert_eq!(counted["demo_requests"], "20");
    // Said before anything is run.
    let nowhere = ["stat", "--output", "/no/such/folder/file", "echo", "heard"];
    let sentence = refused(&mut countersink(&nowhere));
    assert!(
        sentence.starts_with("cannot write /no/such/folder/file"),
        "{sentence}"
    );
}

/// As from a terminal: to the command and to `stat`.
#[test]
fn ctrl_c_ends_the_command_and_its_counts_are_printed() {
    let line = format!("{}; kill -INT $PPID $$", demo(10));
    let mut stat = countersink(&["stat", "sh", "-c", &line]);
    // Whoever runs the tests in the background may ignore the signal, and what is ignored is inherited.
    // SAFETY: between fork and exec, and nothing but a system call.
    unsafe {
        stat.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        });
    }
    let (status, stdout, _) = run(&mut stat);
    assert_eq!(status, Some(130));
    let counted = values(&stdout, &format!("1) After sh -c {line}:"));
    assert_eq!(counted["demo_requests"], "20");
}

#[test]
fn wrong_usage_has_status_2() {
    for arguments in [
        &["stat"][..],
        &["stat", "--phase", "noname"],
        &["stat", "--phase", "=true"],
        &["stat", "--table", "--json", "true"],
        &["stat", "--nonsense", "true"],
    ] {
        let (status, stdout, stderr) = run(&mut countersink(arguments));
        assert_eq!(
            (status, stdout.as_str()),
            (Some(2), ""),
            "{arguments:?} {stderr}"
        );
    }
}

/// As `| true` does.
#[test]
fn commands_run_to_their_end_when_nobody_reads() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = countersink(&["stat", "--phase", "x=true", "--", "sh", "-c", "exit 7"]);
    let status = command.stdout(writer).status().expect("it starts");
    assert_eq!(status.code(), Some(7));
}

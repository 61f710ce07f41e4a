//! `countersink list` as a user types it.
#![cfg(all(target_os = "linux", target_arch = "x86_64", not(countersink_portable)))]

mod demo;

use demo::{Demo, countersink, json, metric, only_file, printed, private_folder, refused, run};

/// The row of a process in `list --json`.
fn row<'a>(listed: &'a serde_json::Value, pid: &str) -> Option<&'a serde_json::Value> {
    let pid: u32 = pid.parse().expect("a number");
    let rows = listed["regions"].as_array().expect("rows");
    rows.iter().find(|row| {
        let pids = row["pids"].as_array().expect("pids");
        pids.iter().any(|other| *other == pid)
    })
}

#[test]
fn programs_are_listed_while_they_live() {
    let demo = Demo::done();
    let pid = demo.pid();
    let listed = json(&mut countersink(&["list", "--json"]));
    assert_eq!(listed["schema"], "countersink-list/1");
    let found = row(&listed, &pid).expect("it is listed");
    for (field, value) in [
        ("program", "demo"),
        ("state", "alive"),
        ("kind", "memfd"),
        ("mechanism", "rseq"),
    ] {
        assert_eq!(found[field], value, "{field}");
    }
    let shown = json(&mut countersink(&["show", &pid, "--json"]));
    metric(&shown, "demo_requests");
    let metrics = shown["regions"][0]["metrics"]
        .as_array()
        .expect("metrics")
        .len();
    assert_eq!(
        (&found["metrics"], &found["torn"]),
        (&metrics.into(), &false.into())
    );

    let text = printed(&mut countersink(&["list"]));
    let line = text
        .lines()
        .find(|line| line.split_whitespace().next() == Some(&pid));
    let cells: Vec<&str> = line.expect("its line").split_whitespace().collect();
    assert_eq!(cells[1..5], ["demo", "alive", "memfd", "rseq"], "{text}");

    demo.end();
    assert_eq!(
        row(&json(&mut countersink(&["list", "--json"])), &pid),
        None
    );
}

#[test]
fn files_are_listed_once_and_after_death() {
    let folder = private_folder();
    let directory = folder.path().to_str().expect("text");
    let demo = Demo::in_directory(folder.path());
    let (pid, file) = (demo.pid(), only_file(folder.path()));
    std::fs::write(folder.path().join("other.countersink"), b"something else").expect("written");
    let of_file = |listed: &serde_json::Value| {
        let rows = listed["regions"].as_array().expect("rows").clone();
        let of_file = rows.into_iter().filter(|row| row["path"] == *file);
        of_file.collect::<Vec<_>>()
    };
    let alive = json(&mut countersink(&["list", "--json", "--dir", directory]));
    assert_eq!(row(&alive, &pid).expect("it is listed")["kind"], "file");
    let rows = of_file(&alive);
    assert_eq!(rows.len(), 1, "the process's row is enough");
    assert_eq!(
        rows[0]["pids"],
        serde_json::json!([pid.parse::<u32>().expect("a number")])
    );
    // Without the directory, too.
    assert_eq!(
        of_file(&json(&mut countersink(&["list", "--json"]))).len(),
        1
    );
    let unreadable = alive["unreadable"].as_array().expect("sentences");
    assert!(
        unreadable
            .iter()
            .any(|sentence| sentence.to_string().contains("other.countersink"))
    );

    demo.kill();
    let dead = json(countersink(&["list", "--json"]).env("COUNTERSINK_DIR", directory));
    assert_eq!(row(&dead, &pid), None);
    let found = of_file(&dead);
    assert_eq!(found.len(), 1);
    assert_eq!(
        (&found[0]["state"], &found[0]["pids"]),
        (&"dead".into(), &serde_json::json!([]))
    );
    let text = printed(&mut countersink(&["list", "--dir", directory]));
    assert!(text.contains(&file), "{text}");
    assert!(text.contains("not readable\n"), "{text}");
}

#[test]
fn a_directory_that_cannot_be_trusted_is_refused() {
    let none = refused(&mut countersink(&["list", "--dir", "/no/such/folder"]));
    assert!(none.contains("/no/such/folder"), "{none}");
    let shared = refused(&mut countersink(&["list", "--dir", "/tmp"]));
    assert!(
        shared.contains("is not trusted: others may write to it"),
        "{shared}"
    );
}

#[test]
fn wrong_usage_has_status_2() {
    assert_eq!(run(&mut countersink(&["list", "something"])).0, Some(2));
}

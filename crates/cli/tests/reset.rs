//! `countersink reset` as a user types it.
#![cfg(all(target_os = "linux", target_arch = "x86_64", not(countersink_portable)))]

mod demo;

use demo::{
    Demo, ROUNDS, countersink, json, line, metric, only_file, printed, private_folder, refused, run,
};

#[test]
fn what_is_taken_and_what_is_left_add_up() {
    let demo = Demo::done();
    let text = printed(&mut countersink(&["reset", &demo.pid()]));
    assert!(
        text.starts_with(&format!("taken from demo (pid {})\n", demo.pid())),
        "{text}"
    );
    assert_eq!(line(&text, "demo_requests"), "2000");
    // Each field, the thrown away ones too, begins again.
    let shown = json(&mut countersink(&["show", &demo.pid(), "--json"]));
    assert_eq!(metric(&shown, "demo_requests")["value"], 0);
    let answer = metric(&shown, "demo_answer");
    for field in [
        "events",
        "skipped",
        "migrated",
        "invalid",
        "time_ns",
        "bytes",
        "byte_events",
    ] {
        assert_eq!(answer[field], 0, "{field}");
    }
    for field in ["min_ns", "max_ns", "min_bytes", "max_bytes"] {
        assert!(answer[field].is_null(), "{field}");
    }
    assert_eq!(metric(&shown, "demo_size")["count"], 0);
    assert_eq!(shown["regions"][0]["resets"], 1);
    let text = printed(&mut countersink(&["show", &demo.pid()]));
    assert!(text.contains(", reset 20"), "{text}");
    assert!(text.contains("0ns(-/-/-)\n"), "{text}");
}

#[test]
fn only_what_is_named_is_reset() {
    let demo = Demo::done();
    let value = |name: &str| {
        let shown = json(&mut countersink(&["show", &demo.pid(), "--json"]));
        metric(&shown, name)["value"].as_u64().expect("a value")
    };
    let taken = json(&mut countersink(&[
        "reset",
        &demo.pid(),
        "--json",
        "demo_s?nt",
    ]));
    assert_eq!(taken["schema"], "countersink-reset/1");
    let only = &taken["regions"][0]["taken"];
    assert_eq!(only.as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&only[0]["name"], &only[0]["value"]),
        (&"demo_sent".into(), &1_100_000.into())
    );
    assert_eq!(only[0]["unit"], "bytes");
    assert_eq!(
        (value("demo_sent"), value("demo_requests")),
        (0, 2 * ROUNDS)
    );
    // A group by its name.
    let text = printed(&mut countersink(&["reset", &demo.pid(), "demo_cache"]));
    assert!(
        text.contains("\ngroup demo_cache\ndemo_cache_hit "),
        "{text}"
    );
    assert!(!text.contains("demo_requests"), "{text}");
    assert_eq!((value("demo_cache_hit"), value("demo_cache_miss")), (0, 0));
}

/// A member of a family by the name that `show` prints, and never a gauge.
#[test]
fn members_are_reset_alone_and_gauges_are_left_alone() {
    let demo = Demo::done();
    let get = "demo_methods{method=\"GET\"}";
    let text = printed(&mut countersink(&["reset", &demo.pid(), get]));
    assert_eq!(line(&text, get), "1500");
    assert!(!text.contains("PUT"), "{text}");
    let shown = printed(&mut countersink(&["show", &demo.pid()]));
    assert_eq!(line(&shown, get), "0");
    assert_eq!(line(&shown, "demo_methods{method=\"PUT\"}"), "500");
    let gauge = refused(&mut countersink(&["reset", &demo.pid(), "demo_threads"]));
    assert!(
        gauge.starts_with("demo_threads goes up and down, "),
        "{gauge}"
    );
    let text = printed(&mut countersink(&["reset", &demo.pid(), "demo_*"]));
    assert_eq!(line(&text, "demo_methods{method=\"PUT\"}"), "500");
    assert!(!text.contains("demo_threads"), "{text}");
    let shown = printed(&mut countersink(&["show", &demo.pid()]));
    assert_eq!(line(&shown, "demo_threads"), "2");
}

#[test]
fn a_name_that_nothing_has_resets_nothing() {
    let demo = Demo::done();
    for name in ["demo_request", "*x*x*"] {
        let arguments = ["reset", &demo.pid(), "demo_sent", name];
        let sentence = refused(&mut countersink(&arguments));
        let start = format!("nothing is named {name}; there is demo_answer, demo_answers_kept, ");
        assert!(sentence.starts_with(&start), "{sentence}");
    }
    let shown = json(&mut countersink(&["show", &demo.pid(), "--json"]));
    assert_eq!(metric(&shown, "demo_sent")["value"], 1_100_000);
    assert_eq!(shown["regions"][0]["resets"], 0);
}

/// Takes from outside lose nothing while the program counts.
#[test]
fn resets_under_load_lose_nothing() {
    let demo = Demo::counting();
    let mut sums = [0_u64; 2];
    let mut add = |taken: &serde_json::Value| {
        let taken = taken["regions"][0]["taken"]
            .as_array()
            .expect("what was taken")
            .clone();
        for (sum, name) in sums.iter_mut().zip(["demo_cache_hit", "demo_cache_miss"]) {
            let of_name = taken.iter().find(|metric| metric["name"] == name);
            *sum += of_name.expect("it was taken")["value"]
                .as_u64()
                .expect("a value");
        }
    };
    for _ in 0..20 {
        add(&json(&mut countersink(&[
            "reset",
            &demo.pid(),
            "--json",
            "demo_cache",
        ])));
    }
    // The requests were never reset: each of them hit or missed, but for those in the middle of it.
    let before = json(&mut countersink(&["show", &demo.pid(), "--json"]));
    add(&json(&mut countersink(&[
        "reset",
        &demo.pid(),
        "--json",
        "demo_cache",
    ])));
    let after = json(&mut countersink(&["show", &demo.pid(), "--json"]));
    let requests = |shown| {
        metric(shown, "demo_requests")["value"]
            .as_u64()
            .expect("a value")
    };
    let all: u64 = sums.iter().sum();
    assert!(requests(&before) <= all, "{all}");
    assert!(all <= requests(&after) + 2, "{all}");
    assert_eq!(after["regions"][0]["resets"], 21);
}

#[test]
fn of_several_programs_one_has_to_be_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("several-demos");
    std::os::unix::fs::symlink(demo::program(), &program).expect("linked");
    let start = || Demo::start(std::process::Command::new(&program).arg("1"));
    let (one, two) = (start(), start());
    let sentence = refused(&mut countersink(&["reset", "several-demos"]));
    assert!(
        sentence.starts_with("several are called several-demos: "),
        "{sentence}"
    );
    for demo in [&one, &two] {
        assert!(
            sentence.contains(&format!("(pid {})", demo.pid())),
            "{sentence}"
        );
    }
    drop(two);
    let text = printed(&mut countersink(&["reset", "several-demos"]));
    assert!(text.contains(&format!("(pid {})", one.pid())), "{text}");
}

#[test]
fn files_of_the_dead_can_be_reset() {
    let folder = private_folder();
    let demo = Demo::in_directory(folder.path());
    let file = only_file(folder.path());
    demo.kill();
    let text = printed(&mut countersink(&["reset", &file, "demo_requests"]));
    assert_eq!(line(&text, "demo_requests"), "2000");
    let shown = json(&mut countersink(&["show", &file, "--json"]));
    assert_eq!(metric(&shown, "demo_requests")["value"], 0);
}

#[test]
fn wrong_usage_has_status_2() {
    assert_eq!(run(&mut countersink(&["reset"])).0, Some(2));
    assert_eq!(
        run(&mut countersink(&["reset", "1", "--nonsense"])).0,
        Some(2)
    );
}

//! `countersink prune` as a user types it.
#![cfg(all(target_os = "linux", target_arch = "x86_64", not(countersink_portable)))]

mod demo;

use demo::{Demo, countersink, only_file, printed, private_folder, refused};

#[test]
fn only_files_of_dead_programs_go() {
    let folder = private_folder();
    let directory = folder.path().to_str().expect("text");
    let dead = {
        let demo = Demo::in_directory(folder.path());
        let file = only_file(folder.path());
        demo.kill();
        file
    };
    let demo = Demo::in_directory(folder.path());
    let alive = format!("{directory}/demo.{}.", demo.pid());
    let other = folder.path().join("other.countersink");
    std::fs::write(&other, b"something else").expect("written");
    std::fs::write(folder.path().join("readme"), b"not ours").expect("written");
    let count = || std::fs::read_dir(folder.path()).expect("a folder").count();

    let says = |text: &str, verbs: [&str; 2]| {
        let [removed, kept] = verbs;
        assert!(text.contains(&format!("{removed} {dead}\n")), "{text}");
        let is_alive = |line: &str| {
            line.starts_with(&format!("{kept} {alive}")) && line.ends_with(": it is in use")
        };
        assert!(text.lines().any(is_alive), "{text}");
        assert!(
            text.contains(&format!("{kept} {}: ", other.display())),
            "{text}"
        );
        assert_eq!(text.lines().count(), 3, "{text}");
    };
    let text = printed(&mut countersink(&["prune", "--dry-run", directory]));
    says(&text, ["would remove", "would keep"]);
    assert_eq!(count(), 4);
    let text = printed(countersink(&["prune"]).env("COUNTERSINK_DIR", directory));
    says(&text, ["removed", "kept"]);
    assert_eq!(count(), 3);
    assert!(!std::path::Path::new(&dead).exists());
    demo.end();
}

#[test]
fn there_has_to_be_a_directory_and_it_may_be_empty() {
    let none = refused(&mut countersink(&["prune"]));
    assert_eq!(none, "no directory: name one, or set COUNTERSINK_DIR");
    let missing = refused(&mut countersink(&["prune", "/no/such/folder"]));
    assert!(
        missing.starts_with("cannot look into /no/such/folder: "),
        "{missing}"
    );
    let folder = private_folder();
    let directory = folder.path().to_str().expect("text");
    let empty = printed(&mut countersink(&["prune", directory]));
    assert_eq!(empty, format!("{directory} has no region files\n"));
}

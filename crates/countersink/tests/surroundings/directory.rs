//! Directories in which the region's file cannot be made, or had better not be, and what else lies there.

use std::fs::{self, DirBuilder, Permissions};
use std::io::ErrorKind::NotFound;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use countersink::reader::{Life, OpenError, Pruned, Region, State, Value, files_in, prune};
use tempfile::TempDir;

use crate::child::{Act, Child, Outcome, argument, is_root, listen, tell};
use crate::work::{TOTAL, count_and_check};

pub(crate) const ACTS: &[Act] = &[
    ("directory::count", count_and_check),
    ("directory::wait", wait),
    ("directory::plant", plant),
    ("directory::named", named),
];

/// Counts, and waits to be told to end.
fn wait() {
    count_and_check();
    tell("pid", std::process::id());
    listen();
}

pub(crate) fn temporary() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

/// A directory that will do, in one that is removed.
fn good(temporary: &TempDir) -> PathBuf {
    let path = temporary.path().join("regions");
    DirBuilder::new()
        .mode(0o700)
        .create(&path)
        .expect("a directory");
    path
}

/// All names in a directory, sorted.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("plain");
    let mut names: Vec<_> = entries
        .map(|entry| name(entry.expect("an entry")))
        .collect();
    names.sort();
    names
}

fn count_in(directory: impl AsRef<Path>) -> Outcome {
    Child::new("directory::count")
        .env("COUNTERSINK_DIR", directory.as_ref())
        .run()
}

pub(crate) fn value(region: &Region) -> u64 {
    let snapshot = region.snapshot().expect("a snapshot");
    assert_eq!(snapshot.problems, Vec::<String>::new());
    let counter = snapshot
        .metrics
        .iter()
        .find(|metric| metric.name == "odd_counter");
    match counter.map(|metric| &metric.value) {
        Some(Value::Counter(count)) => *count,
        other => panic!("{other:?}"),
    }
}

/// The only file of a directory, with all that was counted.
fn only_file(directory: &Path) -> Region {
    let mut files = files_in(directory).expect("trusted");
    assert_eq!(files.len(), 1, "{files:?}");
    let region = files.remove(0).region.expect("a region");
    assert_eq!(value(&region), TOTAL);
    region
}

#[test]
fn a_missing_directory_is_made() {
    let temporary = temporary();
    let directory = temporary.path().join("new");
    let mut child = Child::new("directory::wait")
        .env("COUNTERSINK_DIR", &directory)
        .start();
    let pid: u32 = child.hear("pid").parse().expect("a number");

    assert_eq!(
        fs::metadata(&directory).expect("made").mode() & 0o7777,
        0o700
    );
    let region = only_file(&directory);
    assert_eq!(
        (region.state(), region.info().creator()),
        (State::Alive, Life::Alive)
    );
    assert_eq!(
        (region.info().pid, region.info().start_time > 0),
        (pid, true)
    );
    let path = files_in(&directory).expect("trusted").remove(0).path;
    let metadata = fs::metadata(&path).expect("a file");
    assert_eq!(metadata.mode() & 0o7777, 0o600);
    // A hole that cannot be filled later would be a deadly signal.
    assert!(metadata.blocks() * 512 >= metadata.len(), "{metadata:?}");
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .expect("plain");
    assert!(name.contains(&format!(".{pid}.")), "{name}");
    assert!(matches!(
        prune(&directory).expect("trusted")[..],
        [Pruned::Alive(_)]
    ));

    child.kill();
    let outcome = child.end();
    assert_eq!(
        (outcome.value("place"), outcome.value("home")),
        ("file", "region")
    );
    let region = only_file(&directory);
    assert_eq!(
        (region.state(), region.info().creator()),
        (State::Dead, Life::Dead)
    );
    assert!(matches!(
        prune(&directory).expect("trusted")[..],
        [Pruned::Removed(_)]
    ));
    assert_eq!(names(&directory), [""; 0]);
}

/// Threads find that it is missing, and make it, at the same time.
#[test]
fn a_directory_is_made_by_several_at_once() {
    let temporary = temporary();
    for number in 0..20 {
        let directory = temporary.path().join(number.to_string());
        let outcome = count_in(&directory);
        assert_eq!(
            (outcome.value("place"), outcome.value("hindrance")),
            ("file", "")
        );
        only_file(&directory);
    }
}

/// It counts in a memfd instead, and says what is wrong; nothing is made.
fn refused(directory: impl AsRef<Path>, why: &str) {
    let directory = directory.as_ref();
    let outcome = count_in(directory);
    let name = directory.display().to_string();
    println!("{name:.40}: {:?}", outcome.value("hindrance"));
    assert_eq!(
        (outcome.value("place"), outcome.value("home")),
        ("memfd", "region")
    );
    assert!(outcome.value("hindrance").contains(why), "{}", outcome.text);
}

#[test]
fn a_directory_that_is_open_to_others_is_refused() {
    let temporary = temporary();
    let directory = good(&temporary);
    for mode in [0o755, 0o777, 0o1777, 0o710, 0o701] {
        fs::set_permissions(&directory, Permissions::from_mode(mode)).expect("ours");
        refused(&directory, "closed to others");
        // Without making it ours again.
        assert_eq!(
            fs::metadata(&directory).expect("there").mode() & 0o7777,
            mode
        );
    }
    assert_eq!(names(&directory), [""; 0]);
}

#[test]
fn a_directory_of_somebody_else_is_refused() {
    if !is_root("a directory of another user") {
        return;
    }
    let temporary = temporary();
    let directory = good(&temporary);
    chown(&directory, Some(65534), Some(65534)).expect("root");
    refused(&directory, "of ours");
    assert_eq!(names(&directory), [""; 0]);
}

#[test]
fn links_and_files_are_no_directories() {
    let temporary = temporary();
    let directory = good(&temporary);
    let link = temporary.path().join("link");
    symlink(&directory, &link).expect("a link");
    refused(&link, "not a directory");
    // A slash at the end would have it followed.
    refused(temporary.path().join("link/"), "not a directory");
    refused(temporary.path().join("link///"), "not a directory");
    assert_eq!(names(&directory), [""; 0]);

    let nowhere = temporary.path().join("nowhere");
    symlink(temporary.path().join("missing"), &nowhere).expect("a link");
    refused(&nowhere, "not a directory");
    assert!(!temporary.path().join("missing").exists());

    let file = temporary.path().join("file");
    fs::write(&file, "text").expect("a file");
    refused(&file, "not a directory");
    assert_eq!(fs::read_to_string(&file).expect("a file"), "text");

    refused(temporary.path().join("missing/too"), "No such file");
    refused(temporary.path().join("x".repeat(300)), "too long");
    refused("/".to_owned() + &"y/".repeat(3000), "");
    refused("/", "closed to others");
    refused("/proc/self/fd", "");
    // A slash that leads nowhere else is fine.
    let outcome = count_in(directory.join(""));
    assert_eq!(outcome.value("place"), "file");
    only_file(&directory);
}

/// Puts something at the names that the file will have, and counts.
fn plant() {
    let argument = argument();
    let (what, victim) = argument.split_once(' ').expect("two words");
    let directory = PathBuf::from(std::env::var("COUNTERSINK_DIR").expect("set"));
    let stat = fs::read_to_string("/proc/self/stat").expect("/proc");
    let rest = stat.rsplit_once(')').expect("a name").1;
    let start = rest.split_ascii_whitespace().nth(19).expect("field 22");
    let name = fs::read_to_string("/proc/self/comm").expect("/proc");
    let pid = std::process::id();
    let temporary = format!(".countersink-{pid}-{start}-0.tmp");
    let last = format!("{}.{pid}.{start}.countersink", name.trim_end());
    for name in [temporary, last] {
        let path = directory.join(&name);
        match what {
            "link" => symlink(victim, &path).expect("a link"),
            "directory" => fs::create_dir(&path).expect("a directory"),
            _ => fs::write(&path, "planted").expect("a file"),
        }
        tell("planted", &name);
    }
    count_and_check();
}

/// What lies there stays as it is, and the file gets another name.
#[test]
fn what_lies_there_is_not_touched() {
    for what in ["link", "directory", "file"] {
        let temporary = temporary();
        let directory = good(&temporary);
        let victim = temporary.path().join("victim");
        fs::write(&victim, "victim").expect("a file");
        let child = Child::new("directory::plant").env("COUNTERSINK_DIR", &directory);
        let outcome = child.argument(format!("{what} {}", victim.display())).run();
        assert_eq!(
            (outcome.value("place"), outcome.value("hindrance")),
            ("file", "")
        );
        assert_eq!(fs::read_to_string(&victim).expect("a file"), "victim");

        let files = files_in(&directory).expect("trusted");
        let regions: Vec<_> = files
            .iter()
            .filter_map(|file| file.region.as_ref().ok())
            .collect();
        assert_eq!((files.len(), regions.len()), (2, 1), "{files:?}");
        assert_eq!(value(regions[0]), TOTAL);
        assert_eq!(names(&directory).len(), 3, "{:?}", names(&directory));
        if what == "file" {
            let planted = directory.join(outcome.value("planted"));
            assert_eq!(fs::read_to_string(planted).expect("a file"), "planted");
        }
    }
}

/// Counts under another name.
fn named() {
    // The process's, not that of a thread of the test harness.
    fs::write("/proc/self/comm", "a/.. \t\x1b;$(\u{e4}yz").expect("ours");
    count_and_check();
}

#[test]
fn odd_names_of_programs_become_plain() {
    let temporary = temporary();
    let directory = good(&temporary);
    let outcome = Child::new("directory::named")
        .env("COUNTERSINK_DIR", &directory)
        .run();
    assert_eq!(outcome.value("place"), "file");
    let region = only_file(&directory);
    let name = &names(&directory)[0];
    println!("{name} {:?}", region.info().program);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    assert!(
        name.bytes().all(plain) && name.starts_with("a____"),
        "{name}"
    );
    assert!(
        region.info().program.starts_with("a/.. \t\x1b;$("),
        "{:?}",
        region.info().program
    );
}

/// Threads make files at the same time, of which one stays; and whoever looks meanwhile sees whole
/// regions only.
#[test]
fn files_appear_when_they_are_complete() {
    const CHILDREN: usize = 12;
    let temporary = temporary();
    let directory = temporary.path().join("made by whoever is first");
    let over = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let looker = scope.spawn(|| {
            let (mut looks, mut seen) = (0, 0);
            while !over.load(SeqCst) {
                for file in files_in(&directory).unwrap_or_default() {
                    let region = match file.region {
                        Ok(region) => region,
                        // That of a thread that was not the first, and removed it again.
                        Err(OpenError::Open { error, .. }) if error.kind() == NotFound => continue,
                        Err(error) => panic!("{error}"),
                    };
                    let snapshot = region.snapshot().expect("a snapshot");
                    assert_eq!(snapshot.problems, Vec::<String>::new());
                    seen += 1;
                }
                looks += 1;
            }
            println!("{looks} looks");
            seen
        });
        for _ in 0..CHILDREN / 2 {
            let start = || {
                let child = Child::new("directory::count");
                child.env("COUNTERSINK_DIR", &directory).start()
            };
            let two = [start(), start()];
            for child in two {
                let outcome = child.finish();
                assert_eq!(
                    (outcome.value("place"), outcome.value("hindrance")),
                    ("file", "")
                );
            }
        }
        over.store(true, SeqCst);
        looker.join().expect("nothing is wrong")
    });
    println!("{seen} regions seen");
    let files = files_in(&directory).expect("trusted");
    assert_eq!((files.len(), names(&directory).len()), (CHILDREN, CHILDREN));
    for file in files {
        assert_eq!(value(&file.region.expect("a region")), TOTAL);
    }
    let pruned = prune(&directory).expect("trusted");
    assert!(
        pruned
            .iter()
            .all(|pruned| matches!(pruned, Pruned::Removed(_))),
        "{pruned:?}"
    );
}

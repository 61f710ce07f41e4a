//! What `COUNTERSINK_REGION` may name.
#![allow(unsafe_code)]

use std::fs::{self, File};
use std::path::Path;

use countersink::clock::{self, Source};
use countersink::reader::{Pruned, Region, Snapshot, State, Value};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::child::{Act, Child, Outcome, listen, tell};
use crate::forge::{Header, memfd, path};
use crate::work::{Crew, TOTAL, check_times, count_and_check, tell_place};

pub(crate) const ACTS: &[Act] = &[
    ("join::count", count_and_check),
    ("join::make", make),
    ("join::second", second),
    ("join::without_rseq", without_rseq),
    ("join::file", file),
];

/// Makes a region, waits while somebody else counts there too, and checks the total of both.
fn make() {
    Crew::hire().work();
    tell_place();
    let mut paths = fs::read_dir("/proc/self/fd")
        .expect("/proc")
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let target = fs::read_link(&path).ok()?;
            (target.as_os_str() == "/memfd:countersink (deleted)").then_some(path)
        });
    let path = paths.next().expect("a region");
    let name = path.file_name().expect("a number").display().to_string();
    tell("path", format!("/proc/{}/fd/{name}", std::process::id()));
    tell(
        "directory",
        std::env::var("COUNTERSINK_DIR").unwrap_or_default(),
    );
    listen();
    check_times(2);
}

/// Counts where somebody has counted already.
fn second() {
    Crew::hire().work();
    tell_place();
    check_times(2);
    tell("own", own_regions());
}

fn file() {
    Crew::hire().work();
    tell_place();
    listen();
    check_times(2);
}

/// How many regions readers find with this process.
fn own_regions() -> usize {
    Region::of_process(std::process::id()).map_or(0, |regions| regions.len())
}

/// Counts, as a process in which no thread can be registered.
fn without_rseq() {
    countersink_percpu::request(countersink_percpu::Mechanism::LockedLanes).expect("first");
    second();
}

/// This machine's clock, by the number of the format.
fn clock_number() -> u32 {
    match clock::source() {
        Source::Cycles => 1,
        Source::CyclesOfEachCpu => 2,
        _ => 3,
    }
}

/// A region as this machine's processes make them, but small.
pub(crate) fn header() -> Header {
    Header {
        cpus: countersink_percpu::choice().cpus,
        entries: 1024,
        segments: 2,
        mechanism: 1,
        clock: clock_number(),
    }
}

fn counted(snapshot: &Snapshot) -> u64 {
    let counter = snapshot
        .metrics
        .iter()
        .find(|metric| metric.name == "odd_counter");
    match counter.map(|metric| &metric.value) {
        Some(Value::Counter(count)) => *count,
        other => panic!("{other:?}, {:?}", snapshot.problems),
    }
}

fn join(path: impl AsRef<Path>) -> Outcome {
    Child::new("join::count")
        .env("COUNTERSINK_REGION", path.as_ref())
        .run()
}

fn refused(path: impl AsRef<Path>, why: &str) {
    let outcome = join(path.as_ref());
    println!(
        "{}: {}",
        path.as_ref().display(),
        outcome.value("hindrance")
    );
    assert_eq!(
        (outcome.value("place"), outcome.value("home")),
        ("memfd", "region")
    );
    assert!(outcome.value("hindrance").contains(why), "{}", outcome.text);
}

const NONE: &str = "is not a region that this program can use";

#[test]
fn what_is_no_region_is_not_joined() {
    let temporary = tempfile::tempdir().expect("a directory");
    let at = |name: &str| temporary.path().join(name);
    refused(at("missing"), "No such file");
    mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
    refused(at("pipe"), NONE);
    refused(temporary.path(), NONE);
    refused("/dev/zero", NONE);
    refused("/proc/self/fd/0", "");
    refused("/proc/self/mem", "");
    refused("relative/and/missing", "No such file");
    fs::write(at("empty"), "").expect("a file");
    refused(at("empty"), NONE);
    fs::write(at("garbage"), vec![0xa5; 1 << 20]).expect("a file");
    refused(at("garbage"), NONE);
    assert_eq!(
        fs::read(at("garbage")).expect("a file"),
        vec![0xa5; 1 << 20]
    );
}

#[test]
fn a_region_must_be_whole_and_sealed() {
    let good = header();
    // This would do.
    let file = memfd(good.size(), &good.bytes(), true);
    assert_eq!(
        join(path(&file)).value("place"),
        "region of another process"
    );

    refused(path(&memfd(good.size(), &good.bytes(), false)), NONE);
    refused(path(&memfd(good.size() - 4096, &good.bytes(), true)), NONE);
    refused(path(&memfd(good.size() + 4096, &good.bytes(), true)), NONE);
    refused(path(&memfd(100, &good.bytes()[..100], true)), NONE);
    let others = [
        Header { cpus: 0, ..good },
        Header { cpus: 8193, ..good },
        Header {
            entries: 129,
            ..good
        },
        Header {
            segments: 0,
            ..good
        },
        Header {
            mechanism: 0,
            ..good
        },
        Header {
            mechanism: 9,
            ..good
        },
        Header { clock: 4, ..good },
    ];
    for other in others {
        refused(path(&memfd(other.size(), &other.bytes(), true)), NONE);
    }
    // Each word of the fields that everything else depends on, changed by one bit.
    for at in (0..88).step_by(4).filter(|at| *at != 36) {
        let mut bytes = good.bytes();
        bytes[at] ^= 0x40;
        let file = memfd(good.size(), &bytes, true);
        let outcome = join(path(&file));
        assert_eq!(outcome.value("place"), "memfd", "byte {at}");
    }
}

/// Numbers that change while a region is used, and cannot be right.
#[test]
fn a_region_that_says_it_is_full_is_not_counted_in() {
    let layout = header();
    let cases = [
        (1024, u64::MAX, "no room for another metric"),
        (1024, 1 << 40, "no room for another metric"),
        (1032, u64::MAX, "no room for its words"),
        (1032, u64::MAX - 7, "no room for its words"),
    ];
    for (at, value, why) in cases {
        let mut bytes = layout.bytes();
        bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        let file = memfd(layout.size(), &bytes, true);
        let outcome = join(path(&file));
        assert_eq!(outcome.value("place"), "region of another process");
        assert_eq!(outcome.value("home"), why, "{at} {value:#x}");
    }
}

/// What was not joined is not held on to: readers find the process in its own region only.
#[test]
fn a_region_with_another_clock_is_left() {
    let other = Header {
        clock: 4 - clock_number(),
        ..header()
    };
    let file = memfd(other.size(), &other.bytes(), true);
    let child = Child::new("join::make").env("COUNTERSINK_REGION", path(&file));
    let mut child = child.start();
    child.hear("path");
    let regions = Region::of_process(child.pid()).expect("a region");
    assert_eq!(regions.len(), 1);
    assert_eq!(counted(&regions[0].snapshot().expect("a snapshot")), TOTAL);
    let maps = fs::read_to_string(format!("/proc/{}/maps", child.pid())).expect("/proc");
    let inode = std::os::unix::fs::MetadataExt::ino(&file.metadata().expect("a file"));
    assert!(!maps.contains(&format!(" {inode} ")), "{maps}");
    child.kill();
    assert!(child.end().value("hindrance").contains(NONE));
}

/// Threads on CPUs without a lane count on the shared one.
#[test]
fn a_region_laid_out_for_one_cpu_is_exact() {
    let narrow = Header {
        cpus: 1,
        ..header()
    };
    let file = memfd(narrow.size(), &narrow.bytes(), true);
    let outcome = join(path(&file));
    assert_eq!(outcome.value("place"), "region of another process");
    assert_eq!(read(&file), TOTAL);
}

fn read(file: &File) -> u64 {
    let own = file.try_clone().expect("a descriptor");
    let region = Region::of_descriptor(own.into()).expect("a region");
    counted(&region.snapshot().expect("a snapshot"))
}

/// The region says how lanes are written: with locked operations, though this process could do better; or
/// in sections, though it cannot.
#[test]
fn mechanisms_of_other_processes_are_kept_to() {
    let locked = Header {
        mechanism: 2,
        ..header()
    };
    let file = memfd(locked.size(), &locked.bytes(), true);
    assert_eq!(
        join(path(&file)).value("place"),
        "region of another process"
    );
    let child = Child::new("join::without_rseq").env("COUNTERSINK_REGION", path(&file));
    assert_eq!(child.run().value("place"), "region of another process");
    assert_eq!(read(&file), 2 * TOTAL);

    let sections = header();
    let file = memfd(sections.size(), &sections.bytes(), true);
    join(path(&file));
    let child = Child::new("join::without_rseq").env("COUNTERSINK_REGION", path(&file));
    assert_eq!(child.run().value("place"), "region of another process");
    assert_eq!(read(&file), 2 * TOTAL);
}

#[test]
fn totals_of_two_processes_add_up() {
    let mut maker = Child::new("join::make").start();
    let path = maker.hear("path");
    let outcome = Child::new("join::second")
        .env("COUNTERSINK_REGION", &path)
        .run();
    assert_eq!(outcome.value("place"), "region of another process");
    assert_eq!((outcome.value("hindrance"), outcome.number("own")), ("", 1));
    maker.say("done");
    assert_eq!(maker.finish().number("sum"), 2 * TOTAL);
}

#[test]
fn a_region_in_a_file_can_be_joined() {
    let temporary = tempfile::tempdir().expect("a directory");
    let directory = temporary.path().join("regions");
    let mut maker = Child::new("join::file")
        .env("COUNTERSINK_DIR", &directory)
        .start();
    maker.hear("home");
    let file = fs::read_dir(&directory)
        .expect("made")
        .next()
        .expect("a file");
    let path = file.expect("a file").path();
    let child = Child::new("join::second").env("COUNTERSINK_REGION", &path);
    let outcome = child.run();
    assert_eq!(outcome.value("place"), "region of another process");
    maker.say("done");
    assert_eq!(maker.finish().number("sum"), 2 * TOTAL);
}

/// Whoever joined a file keeps it alive, also when its maker is dead.
#[test]
fn a_file_is_alive_while_anyone_counts_in_it() {
    let temporary = tempfile::tempdir().expect("a directory");
    let directory = temporary.path().join("regions");
    let mut maker = Child::new("join::file")
        .env("COUNTERSINK_DIR", &directory)
        .start();
    maker.hear("home");
    let files = countersink::reader::files_in(&directory).expect("made");
    let path = files[0].path.clone();
    let mut joiner = Child::new("join::file")
        .env("COUNTERSINK_REGION", &path)
        .start();
    joiner.hear("home");
    let state = || Region::open_file(&path).expect("a region").state();
    let prune = || countersink::reader::prune(&directory).expect("ours");

    maker.kill();
    maker.end();
    assert_eq!(state(), State::Alive);
    assert!(matches!(&prune()[..], [Pruned::Alive(_)]));
    joiner.kill();
    joiner.end();
    assert_eq!(state(), State::Dead);
    assert!(matches!(&prune()[..], [Pruned::Removed(_)]));
    assert!(!path.exists());
}

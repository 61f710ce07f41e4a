//! Core files: what was counted is in them, and what was not used is not.
#![allow(unsafe_code)]

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use countersink::reader::{OpenError, Region, State, Value, files_in};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::child::{Act, Child, Outcome, argument, listen, tell};
use crate::work::{TOTAL, count_and_check};

pub(crate) const ACTS: &[Act] = &[("core_file::crash", crash), ("core_file::wait", wait)];

/// Where the region lies in this process.
fn tell_range() {
    let maps = fs::read_to_string("/proc/self/maps").expect("/proc");
    let lines: Vec<_> = maps
        .lines()
        .filter(|line| line.contains("countersink (") || line.ends_with(".countersink"))
        .collect();
    let (first, last) = (lines[0], lines[lines.len() - 1]);
    let start = first.split('-').next().expect("a start");
    let end = last.split(['-', ' ']).nth(1).expect("an end");
    tell("start", u64::from_str_radix(start, 16).expect("a number"));
    tell("end", u64::from_str_radix(end, 16).expect("a number"));
}

/// Counts and crashes; `DIRECTORY [FILTER]`.
fn crash() {
    let argument = argument();
    let mut words = argument.split(' ');
    std::env::set_current_dir(words.next().expect("a directory")).expect("a directory");
    if let Some(filter) = words.next() {
        fs::write("/proc/self/coredump_filter", filter).expect("ours");
    }
    let maximum = getrlimit(Resource::Core).maximum;
    let limit = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Core, limit).expect("up to the maximum");
    count_and_check();
    tell_range();
    std::process::abort();
}

fn wait() {
    count_and_check();
    tell_range();
    tell("ready", "");
    listen();
}

/// Whether crashes leave files where they happen; prints why not.
fn are_written() -> bool {
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    let pattern = pattern.trim();
    if pattern.is_empty() || pattern.contains(['|', '/', '@']) {
        println!("NOT TESTED: core files go to {pattern:?}");
        return false;
    }
    if getrlimit(Resource::Core).maximum == Some(0) {
        println!("NOT TESTED: core files are not allowed");
        return false;
    }
    true
}

/// The core file of a crash, and what the child told.
fn crashed(directory: &Path, filter: &str) -> (PathBuf, Outcome) {
    let argument = format!("{} {filter}", directory.display());
    let outcome = Child::new("core_file::crash")
        .argument(argument.trim_end())
        .start()
        .end();
    (core_in(directory, &outcome), outcome)
}

/// The core file of a child that crashed in a directory.
fn core_in(directory: &Path, outcome: &Outcome) -> PathBuf {
    assert_eq!(
        outcome.status.signal(),
        Some(libc::SIGABRT),
        "{}",
        outcome.text
    );
    let file = fs::read_dir(directory)
        .expect("a directory")
        .next()
        .expect("a core file");
    file.expect("a core file").path()
}

fn is_exact(core: &Path) {
    let regions = Region::in_core(core).expect("a region");
    assert_eq!((regions.len(), regions[0].state()), (1, State::Dead));
    let snapshot = regions[0].snapshot().expect("a snapshot");
    assert_eq!(snapshot.problems, Vec::<String>::new());
    assert_eq!(snapshot.metrics.len(), 4);
    for metric in snapshot.metrics {
        match metric.value {
            Value::Counter(count) => assert_eq!(count, TOTAL),
            Value::Gauge(gauge) => assert_eq!([gauge.low, gauge.high], [TOTAL as i64 / 6; 2]),
            Value::Span(span) => {
                assert_eq!((span.events, span.byte_events), (TOTAL / 3, TOTAL / 3));
                assert_eq!(
                    span.byte_extremes.map(|bytes| (bytes.min, bytes.max)),
                    Some((1, 100))
                );
            }
            Value::Histogram(values) => assert_eq!(values.count(), TOTAL / 3),
            other => panic!("{other:?}"),
        }
    }
}

/// How many bytes of a core file are of memory in a range.
fn bytes_of(core: &Path, start: u64, end: u64) -> u64 {
    let file = fs::File::open(core).expect("a file");
    let mut header = [0; 64];
    file.read_exact_at(&mut header, 0).expect("a header");
    let u64_at = |bytes: &[u8], at: usize| {
        u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
    };
    let count = u16::from_ne_bytes([header[56], header[57]]);
    let offset = u64_at(&header, 32);
    let sizes = (0..u64::from(count)).map(|number| {
        let mut header = [0; 56];
        file.read_exact_at(&mut header, offset + 56 * number)
            .expect("a header");
        let address = u64_at(&header, 16);
        let loaded = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) == 1;
        if loaded && (start..end).contains(&address) {
            u64_at(&header, 32)
        } else {
            0
        }
    });
    sizes.sum()
}

/// Index and header, a unit of entries, and a segment.
fn is_small(core: &Path, outcome: &Outcome) {
    let (start, end) = (outcome.number("start"), outcome.number("end"));
    let bytes = bytes_of(core, start, end);
    let on_disk = fs::metadata(core).expect("a file").blocks() * 512;
    println!(
        "{} KiB of the region's {} are in the core file, which takes {} KiB on disk",
        bytes / 1024,
        (end - start) / 1024,
        on_disk / 1024
    );
    let segment = (u64::from(countersink_percpu::choice().cpus) + 3) * 64 * 1024;
    assert!(bytes > 0 && bytes <= 2 * 1024 * 1024 + segment, "{bytes}");
}

#[test]
fn a_core_file_has_what_was_counted() {
    if !are_written() {
        return;
    }
    let temporary = tempfile::tempdir().expect("a directory");
    let (core, outcome) = crashed(temporary.path(), "");
    is_exact(&core);
    is_small(&core, &outcome);
}

/// With the kernel's default a memfd is dumped, and a file is not; but that is there itself.
#[test]
fn the_default_filter_leaves_files_out() {
    let filter = fs::read_to_string("/proc/self/coredump_filter").expect("/proc");
    if !filter.trim().ends_with("33") || !are_written() {
        println!("NOT TESTED: coredump_filter is {filter}");
        return;
    }
    let temporary = tempfile::tempdir().expect("a directory");
    let place = temporary.path().join("crash");
    fs::create_dir(&place).expect("a directory");
    let regions = temporary.path().join("regions");
    let child = Child::new("core_file::crash").env("COUNTERSINK_DIR", &regions);
    let outcome = child.argument(place.display()).start().end();
    assert_eq!(outcome.value("place"), "file");
    let core = core_in(&place, &outcome);
    let error = Region::in_core(&core).expect_err("nothing was dumped");
    println!("{error}");
    let files = files_in(&regions).expect("trusted");
    let region = files[0].region.as_ref().expect("a region");
    assert_eq!(region.state(), State::Dead);
    assert_eq!(region.snapshot().expect("a snapshot").metrics.len(), 4);
}

/// Without the bit for anonymous shared memory there is nothing of the region.
#[test]
fn a_filter_can_leave_the_region_out() {
    if !are_written() {
        return;
    }
    let temporary = tempfile::tempdir().expect("a directory");
    let (core, outcome) = crashed(temporary.path(), "0x31");
    assert_eq!(
        bytes_of(&core, outcome.number("start"), outcome.number("end")),
        0
    );
    let error = Region::in_core(&core).expect_err("nothing was dumped");
    println!("{error}");
    assert!(matches!(
        error,
        OpenError::NoCore { .. } | OpenError::NotRegion { .. } | OpenError::NotReady { .. }
    ));
}

#[test]
fn a_debuggers_core_file_has_it_as_well() {
    if Command::new("gcore").arg("--version").output().is_err() {
        println!("NOT TESTED: there is no gcore");
        return;
    }
    let temporary = tempfile::tempdir().expect("a directory");
    // Unused address space of the allocator would be written out too.
    let mut child = Child::new("core_file::wait")
        .env("MALLOC_ARENA_MAX", "1")
        .start();
    child.hear("ready");
    let prefix = temporary.path().join("core");
    let output = Command::new("gcore")
        .arg("-o")
        .arg(&prefix)
        .arg(child.pid().to_string())
        .output();
    let output = output.expect("gcore starts");
    assert!(output.status.success(), "{output:?}");
    let core = temporary.path().join(format!("core.{}", child.pid()));
    child.say("go on");
    let outcome = child.finish();
    is_exact(&core);
    is_small(&core, &outcome);
}

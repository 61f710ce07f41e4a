//! Counts with two versions of the library at once. Arguments: both versions, and the directory of the
//! region files where there is to be one. See `ci/versions`.

use this::reader::{Region, Value, files_in};

const THREADS: u64 = 4;
const ROUNDS: u64 = 100_000;

/// The same program for either version.
macro_rules! program {
    ($module:ident, $library:ident) => {
        mod $module {
            use $library::{Counter, Span, region};

            static COUNTER: Counter = Counter::new("events");
            static SPAN: Span = Span::new("spans");

            pub(crate) fn count(factor: u64) {
                for _ in 0..super::ROUNDS {
                    COUNTER.add(factor);
                    SPAN.start().stop();
                }
            }

            pub(crate) fn check(factor: u64) {
                let events = super::THREADS * super::ROUNDS;
                assert_eq!(
                    (COUNTER.sum(), SPAN.read().events),
                    (factor * events, events)
                );
                println!("{}: {:?}", stringify!($library), region::status());
            }

            #[allow(dead_code, reason = "one of them stays")]
            pub(crate) fn leave() {
                region::unshare().expect("there is memory");
                COUNTER.inc();
                assert_eq!((COUNTER.sum(), SPAN.read().events), (1, 0));
            }
        }
    };
}

program!(first, this);
program!(second, other);

/// Version and count of all regions of this process, by version.
fn regions() -> Vec<(String, u64)> {
    let regions = Region::of_process(std::process::id()).expect("regions");
    let mut found: Vec<_> = regions.iter().map(version_and_count).collect();
    found.sort();
    found
}

fn version_and_count(region: &Region) -> (String, u64) {
    let [major, minor, patch] = region.info().library;
    let snapshot = region.snapshot().expect("a snapshot");
    let events = snapshot
        .metrics
        .iter()
        .find(|metric| metric.name == "events");
    match events.map(|metric| &metric.value) {
        Some(Value::Counter(count)) => (format!("{major}.{minor}.{patch}"), *count),
        other => panic!("{other:?}"),
    }
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                first::count(1);
                second::count(3);
            });
        }
    });
    first::check(1);
    second::check(3);

    let events = THREADS * ROUNDS;
    let mut expected = vec![
        (arguments[0].clone(), events),
        (arguments[1].clone(), 3 * events),
    ];
    expected.sort();
    assert_eq!(regions(), expected);
    if let Some(directory) = arguments.get(2) {
        let files = files_in(directory).expect("trusted");
        let regions = files
            .iter()
            .map(|file| file.region.as_ref().expect("a region"));
        let mut found: Vec<_> = regions.map(version_and_count).collect();
        found.sort();
        assert_eq!(found, expected);
    }

    // One version leaves its region in a child; the other stays.
    // SAFETY: this process has no other thread now.
    let child = unsafe { libc::fork() };
    if child == 0 {
        first::leave();
        second::check(3);
        let counts: Vec<_> = regions().into_iter().map(|region| region.1).collect();
        assert!(
            counts.contains(&1) && counts.contains(&(3 * events)),
            "{counts:?}"
        );
        return;
    }
    let mut status = 0;
    // SAFETY: our child, and an int.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    first::check(1);
    second::check(3);
}

//! Metrics that the region cannot take: they count privately, and both sides say why.

use std::sync::Arc;

use countersink::reader::{Refusal, Region, Snapshot};
use countersink::region::{Options, OptionsError, Place, configure, status};
use countersink::{Counter, Family, Gauge, Histogram, Home, Span, Unit};

use crate::child::{Act, Child, argument, tell};
use crate::work::{Crew, check_times, tell_place};

pub(crate) const ACTS: &[Act] = &[
    ("refusals::names", names),
    ("refusals::others", others),
    ("refusals::full", full),
    ("refusals::no_words", no_words),
    ("refusals::help", help),
    ("refusals::options", options),
];

/// What a reader finds in this process.
fn snapshot() -> Snapshot {
    let region = Region::of_process(std::process::id())
        .expect("a region")
        .remove(0);
    let snapshot = region.snapshot().expect("a snapshot");
    assert_eq!(snapshot.problems, Vec::<String>::new());
    snapshot
}

fn find<'a>(refusals: &'a [Refusal], name: &str) -> &'a Refusal {
    let found = refusals.iter().find(|refusal| refusal.name == name);
    found.unwrap_or_else(|| panic!("{name:?} is not among {refusals:?}"))
}

/// Counts, and is private for the reason that it should be.
fn is_private(counter: &Counter, why: &str) {
    counter.add(4);
    counter.inc();
    assert_eq!(counter.sum(), 5);
    let home = counter.home();
    assert!(
        matches!(home, Home::Private(text) if text.contains(why)),
        "{home:?} is not {why:?}"
    );
}

fn run(act: &str) {
    Child::new(act).run();
}

fn names() {
    let bad = ["", "9a", "a b", "a-b", "ä", "a\n", "a\0b"];
    for name in bad {
        is_private(&Counter::new(name), "not a metric's name");
    }
    let long: &'static str = "n".repeat(256).leak();
    is_private(&Counter::new(long), "too long");
    let longest: &'static str = "n".repeat(255).leak();
    let counter = Counter::new(longest);
    counter.inc();
    assert_eq!(counter.home(), Home::Region);
    // A character that would be cut in the middle.
    let cut: &'static str = ("n".repeat(47) + "äb").leak();
    is_private(&Counter::new(cut), "not a metric's name");

    let many = Family::new(Counter::new("odd_labels"), ["value"]);
    let value = "v".repeat(448 - "odd_labels".len() - r#"value="""#.len());
    assert_eq!(many.with([&value]).home(), Home::Region);
    is_private(&many.with([&(value + "v")]), "too long");
    // Characters that have to be written as two.
    let quotes = "\"".repeat(220);
    is_private(&many.with([&quotes]), "too long");
    for names in [["a", "a"], ["", "b"], ["a:b", "c"]] {
        let family = Family::new(Counter::new("odd_labels"), names);
        is_private(&family.with(["1", "2"]), "not valid labels");
    }

    let snapshot = snapshot();
    println!("{:#?}", snapshot.refusals);
    assert_eq!(snapshot.refused, bad.len() as u64 + 2 + 2 + 3);
    for name in ["9a", "a b", "ä", "a\n"] {
        assert_eq!(find(&snapshot.refusals, name).times, 1);
    }
    assert_eq!(find(&snapshot.refusals, &long[..48]).times, 1);
    assert_eq!(find(&snapshot.refusals, &"n".repeat(47)).times, 1);
    let labels = snapshot
        .refusals
        .iter()
        .filter(|refusal| refusal.name == "odd_labels");
    let mut times: Vec<_> = labels.map(|refusal| refusal.times).collect();
    times.sort_unstable();
    assert_eq!(times, [2, 3]);
    assert_eq!(snapshot.metrics.len(), 2);
}

#[test]
fn bad_names_and_labels() {
    run("refusals::names");
}

fn others() {
    static FIRST: Counter = Counter::new("odd_first");
    static SAME: Counter = Counter::new("odd_first").help("Told too late");
    static BYTES: Counter = Counter::new("odd_first").unit(Unit::Bytes);
    static GAUGE: Gauge = Gauge::new("odd_first");
    static SPAN: Span = Span::new("odd_first");
    static FINE: Histogram<5> = Histogram::new("odd_fine");
    static COARSE: Histogram<2> = Histogram::new("odd_fine");
    FIRST.inc();
    SAME.inc();
    assert_eq!((FIRST.sum(), SAME.sum(), SAME.home()), (2, 2, Home::Region));

    is_private(&BYTES, "another kind, unit, grouping power or sum");
    GAUGE.sub(3);
    SPAN.start().stop_bytes(9);
    assert_eq!(
        (GAUGE.value(), SPAN.read().bytes, SPAN.read().events),
        (-3, 9, 1)
    );
    FINE.record(100);
    COARSE.record(7);
    COARSE.record(8);
    assert_eq!((FINE.read().count(), COARSE.read().count()), (1, 2));
    for home in [GAUGE.home(), SPAN.home(), COARSE.home()] {
        assert!(matches!(home, Home::Private(_)), "{home:?}");
    }
    assert_eq!(FIRST.sum(), 2);

    let snapshot = snapshot();
    assert_eq!((snapshot.refused, snapshot.metrics.len()), (4, 2));
    assert_eq!(find(&snapshot.refusals, "odd_first").times, 3);
    assert_eq!(find(&snapshot.refusals, "odd_fine").times, 1);
    assert!(
        snapshot.refusals[0].reason.contains("another kind"),
        "{:?}",
        snapshot.refusals
    );
}

#[test]
fn another_kind_unit_or_grouping() {
    run("refusals::others");
}

/// There is room for 128 metrics, and 200 are wanted.
fn full() {
    let options = Options {
        metrics: Some(128),
        segments: Some(1),
        ..Options::default()
    };
    configure(&options).expect("nothing was used");
    // Threads that register a metric at the same time may use up an entry each.
    tell_place();
    Crew::hire().work();
    let family = Family::new(Counter::new("odd_many"), ["number"]);
    let count = |number: u64| -> Arc<Counter> {
        let counter = family.with([&number.to_string()]);
        counter.add(number);
        counter
    };
    let counters: Vec<_> = (0..200).map(count).collect();
    for (number, counter) in counters.iter().enumerate() {
        assert_eq!(counter.sum(), number as u64);
        // Four entries were taken before.
        let expected = match number {
            ..124 => Home::Region,
            _ => Home::Private("no room for another metric"),
        };
        assert_eq!(counter.home(), expected, "{number}");
    }
    check_times(1);
    let found = snapshot();
    assert_eq!((found.refused, found.metrics.len()), (76, 128));
    assert_eq!(find(&found.refusals, "odd_many").times, 76);
    assert_eq!((status().metrics, status().segments), (128, 1));

    // What is dropped makes room.
    drop(counters);
    assert!(family.remove(["0"]));
    let late = Counter::new("odd_late");
    late.inc();
    assert_eq!((late.sum(), late.home()), (1, Home::Region));
    assert_eq!(snapshot().metrics.len(), 128);
}

#[test]
fn no_room_for_another_metric() {
    run("refusals::full");
}

/// There are entries, and one segment for the words of large histograms.
fn no_words() {
    let options = Options {
        segments: Some(1),
        ..Options::default()
    };
    configure(&options).expect("nothing was used");
    let family = Family::new(Histogram::<6>::new("odd_large"), ["number"]);
    let histograms: Vec<_> = (0..10)
        .map(|number| family.with([&number.to_string()]))
        .collect();
    for histogram in &histograms {
        (0..1000).for_each(|value| histogram.record(value));
        assert_eq!(histogram.read().count(), 1000);
    }
    let homes = histograms
        .iter()
        .filter(|histogram| histogram.home() == Home::Region);
    let in_region = homes.count();
    println!("{in_region} histograms have room");
    assert!((1..10).contains(&in_region));
    let why = Home::Private("no room for its words");
    assert!(
        histograms[in_region..]
            .iter()
            .all(|histogram| histogram.home() == why)
    );
    let snapshot = snapshot();
    assert_eq!(snapshot.refused, 10 - in_region as u64);
    assert_eq!(
        find(&snapshot.refusals, "odd_large").times,
        10 - in_region as u64
    );
    // Small ones still fit.
    Crew::hire().work();
    check_times(1);
}

#[test]
fn no_room_for_words() {
    run("refusals::no_words");
}

/// Help texts are cut where a character ends; name and labels are not.
fn help() {
    for before in 0..4 {
        let name: &'static str = format!("odd_help_{before}").leak();
        let text: &'static str = ("x".repeat(before) + &"€".repeat(400)).leak();
        let counter = Counter::new(name).help(text);
        counter.inc();
        let snapshot = snapshot();
        let metric = snapshot.metrics.iter().find(|metric| metric.name == name);
        let found = &metric.expect("registered").help;
        let room = 448 - name.len();
        assert!(text.starts_with(found.as_str()), "{found}");
        assert!(
            found.len() <= room && room - found.len() < 3,
            "{} of {room}",
            found.len()
        );
        // Dropping it makes room for the next one, which takes its entry.
        drop(counter);
    }
    assert_eq!(snapshot().refused, 0);
}

#[test]
fn long_help_texts_are_cut() {
    run("refusals::help");
}

fn options() {
    let wanted = |metrics, segments| Options {
        metrics,
        segments,
        ..Options::default()
    };
    let size = Err(OptionsError::Size);
    for (metrics, segments) in [(65_537, 1), (u32::MAX, 1), (128, 0), (128, 257)] {
        assert_eq!(configure(&wanted(Some(metrics), Some(segments))), size);
    }
    let zero = Options {
        directory: Some("a\0b".into()),
        ..Options::default()
    };
    assert_eq!(configure(&zero), Err(OptionsError::Directory));
    let bad = Options {
        directory: Some(argument().into()),
        ..wanted(Some(1), Some(256))
    };
    configure(&bad).expect("possible, as far as it can be seen here");
    assert_eq!(configure(&bad), Err(OptionsError::TooLate));
    Crew::hire().work();
    check_times(1);
    let status = status();
    assert_eq!(
        (status.place, status.metrics, status.segments),
        (Place::Memfd, 128, 256)
    );
    tell("hindrance", status.hindrance);
    assert_eq!(configure(&Options::default()), Err(OptionsError::TooLate));
}

#[test]
fn options_that_cannot_be_followed() {
    // What the program says counts, not what the environment does.
    let child = Child::new("refusals::options").env("COUNTERSINK_REGION", "/dev/zero");
    let outcome = child.argument("/proc").run();
    assert!(
        outcome.value("hindrance").contains("closed to others"),
        "{}",
        outcome.text
    );
}

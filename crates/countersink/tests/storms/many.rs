//! Ten thousand counters.

use std::time::Instant;

use countersink::{Counter, Home};

use crate::common::child::alone;
use crate::common::raw::Raw;
use crate::common::read;

const COUNTERS: u64 = 10_000;

/// Bytes that the process has in memory.
pub(crate) fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = statm.split(' ').nth(1).expect("the second field");
    pages.parse::<u64>().expect("a number") * 4096
}

fn ten_thousand() {
    let counters: Vec<Counter> = (0..COUNTERS)
        .map(|number| Counter::new(format!("many_{number}").leak()))
        .collect();
    let before = resident();
    let start = Instant::now();
    for (number, counter) in counters.iter().enumerate() {
        counter.add(number as u64 + 1);
    }
    println!(
        "{COUNTERS} counters: registered in {:?}, {} KiB",
        start.elapsed(),
        (resident() - before) / 1024
    );
    assert!(
        counters
            .iter()
            .all(|counter| counter.home() == Home::Region)
    );
    assert_eq!(Raw::own().entries_used(), COUNTERS);
    assert_eq!(Raw::own().words_used(), COUNTERS, "8 bytes in each lane");
    let start = Instant::now();
    let snapshot = read::snapshot();
    println!("read in {:?}", start.elapsed());
    assert_eq!(snapshot.metrics.len() as u64, COUNTERS);
    for metric in &snapshot.metrics {
        let number = metric.name.strip_prefix("many_").expect("one of ours");
        let number: u64 = number.parse().expect("a number");
        assert_eq!(read::count_of(metric), number + 1, "{}", metric.name);
    }
}

#[test]
fn are_all_there() {
    alone("many::are_all_there", ten_thousand);
}

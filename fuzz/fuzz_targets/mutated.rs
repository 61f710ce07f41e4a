//! A region with every kind of metric, changed in a few places.
#![no_main]

use std::sync::LazyLock;

use countersink::reader::Region;
use countersink_fuzz::change::change;
use countersink_fuzz::{assert_valid, build, look_at_bytes};
use libfuzzer_sys::fuzz_target;

static REGION: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let bytes = build::region();
    assert_valid(&Region::of_bytes(bytes.clone()).expect("a region"));
    bytes
});

fuzz_target!(|input: &[u8]| {
    let mut bytes = REGION.clone();
    change(&mut bytes, &build::PARTS, input);
    look_at_bytes(bytes);
});

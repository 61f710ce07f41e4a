//! A core file with such a region, changed in a few places. It is a real file, with holes, since core
//! files are read from files only.
#![no_main]

use std::fs::File;
use std::path::PathBuf;
use std::sync::LazyLock;

use countersink::reader::Region;
use countersink_fuzz::change::change;
use countersink_fuzz::{assert_valid, build, look_at};
use libfuzzer_sys::fuzz_target;

static PATH: LazyLock<PathBuf> = LazyLock::new(|| {
    let name = format!("countersink-fuzz-{}.core", std::process::id());
    std::env::temp_dir().join(name)
});
static CORE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let bytes = build::core();
    regions_in(&bytes).iter().for_each(assert_valid);
    assert_eq!(regions_in(&bytes).len(), 1);
    bytes
});

fn regions_in(bytes: &[u8]) -> Vec<Region> {
    let written = File::create(&*PATH).and_then(|file| build::fill(&file, bytes));
    written.expect("the file system takes a core file");
    Region::in_core(&*PATH).unwrap_or_default()
}

fuzz_target!(|input: &[u8]| {
    let mut bytes = CORE.clone();
    change(&mut bytes, &build::core_parts(), input);
    regions_in(&bytes).iter().for_each(look_at);
});

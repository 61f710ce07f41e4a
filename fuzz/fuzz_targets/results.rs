//! Any text as a result file: of this program, of will-it-scale, of Go's benchmarks. It is refused, or compared with itself and rendered.
#![no_main]

use countersink_harness::compare::read::sheet;
use countersink_harness::compare::{Rule, between, compare};
use countersink_harness::render::{Format, render};
use countersink_harness::result::Results;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    if let Ok(sheet) = sheet("x", text) {
        let same = std::slice::from_ref(&sheet);
        for rule in [Rule::Welch, Rule::Mmtests2018, Rule::Mmtests2024] {
            let rows = compare(&sheet, same, rule).expect("a sheet has all of itself");
            assert_eq!(rows.len(), sheet.series.len());
        }
        assert!(between(&sheet, &sheet).len() <= sheet.series.len());
    }
    if let Ok(results) = Results::from_json(text) {
        for format in [Format::Csv, Format::Go, Format::Markdown] {
            render(&results, format);
        }
        let again = render(&results, Format::Json);
        assert_eq!(
            Results::from_json(&again).expect("what was written"),
            results
        );
    }
});

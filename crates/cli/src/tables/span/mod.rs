//! The tables of `bench span`.

mod costs;
mod look_ups;
mod page_tables;

pub(crate) use costs::render as render_costs;
pub(crate) use look_ups::{render as render_look_ups, render_published};
pub(crate) use page_tables::render as render_page_tables;

use countersink::reader::Span;
use countersink_experiments::span::readings::quantile;

use crate::units::{self, average, scaled};

/// A line as the kernel patch has it: events, those skipped, total(min/avg/max); and percentiles.
fn line(name: &str, span: &Span) -> String {
    let skipped = match span.skipped {
        0 => String::new(),
        skipped => format!("(+{skipped:>3}) "),
    };
    let time = |nanoseconds: u64| scaled(nanoseconds, units::TIME);
    let times = match span.times {
        Some(times) => format!(
            "({}/{}/{})",
            time(times.min),
            time(average(span.time, span.events)),
            time(times.max)
        ),
        None => "(-/-/-)".to_owned(),
    };
    let percentiles = [0.5, 0.99].map(|part| {
        let found = quantile(span, part);
        found.map_or("-".to_owned(), |found| time(found.round() as u64))
    });
    format!(
        "  {name:<18} {:>10} {skipped}{}{times} {}\n",
        span.events,
        time(span.time),
        percentiles.join("/"),
    )
}

#[cfg(test)]
mod tests {
    use countersink::reader::{Buckets, Extremes};
    use countersink_experiments::span::readings::Reading;

    use super::*;

    /// A span of events, all in the bucket of no time.
    pub(crate) fn span(events: u64, time: u64, min: u64, max: u64) -> Span {
        Span {
            events,
            time,
            times: Some(Extremes { min, max }),
            // How long a tick is depends on the machine.
            histogram: Some(Buckets {
                grouping: 5,
                sum: None,
                buckets: vec![(0, events)],
            }),
            ..Span::default()
        }
    }

    /// A reading of six rounds, whose samples are all the same.
    pub(crate) fn reading((variant, op, pattern): (&str, &str, &str), sample: Span) -> Reading {
        Reading {
            variant: variant.to_owned(),
            op: op.to_owned(),
            pattern: pattern.to_owned(),
            all: vec![sample; 13],
        }
    }

    #[test]
    fn lines_are_the_published_ones_and_percentiles() {
        let mut sparsemem = span(596_360, 10_500_000, 4, 28_700);
        let text = line("sparsemem", &sparsemem);
        assert_eq!(
            text,
            "  sparsemem              596360 10.5ms(4ns/18ns/28.7us) 0ns/0ns\n"
        );
        sparsemem.skipped = 7;
        let text = line("sparsemem", &sparsemem);
        assert!(text.contains(" 596360 (+  7) 10.5ms("), "{text}");
        let text = line("nothing", &Span::default());
        assert_eq!(text, "  nothing                     0 0ns(-/-/-) -/-\n");
    }
}

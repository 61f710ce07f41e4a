//! What is said around the metrics.

use countersink::reader::{Info, Kind, Mechanism, Metric, Per, Snapshot};

use crate::{names, times};

/// What is said of a region before its metrics; `who` says which processes have it.
pub(super) fn heading(who: &str, info: &Info, snapshot: &Snapshot) -> String {
    let [major, minor, patch] = info.library;
    let resets = match snapshot.resets {
        0 => "never reset".to_owned(),
        1 => format!("reset {}", times::utc(snapshot.last_reset)),
        n => format!("reset {n} times, last {}", times::utc(snapshot.last_reset)),
    };
    let reason = match info.mechanism_reason.as_str() {
        "" => mechanism(info.mechanism),
        reason => reason,
    };
    let hindrance = match info.hindrance.as_str() {
        "" => String::new(),
        why => format!("wanted     elsewhere: {}\n", names::escaped(why)),
    };
    format!(
        "program    {} ({who})\nmechanism  {}\nregion     {}, CPU lanes: {}, library {major}.{minor}.{patch}\n\
         {hindrance}counting   since {}, {resets}\n",
        names::escaped(&info.program),
        names::escaped(reason),
        kind(info.kind),
        info.cpus,
        times::utc(info.created),
    )
}

/// Which lanes are shown, if not their sums, and what resets mean there.
pub(super) fn lanes(only: Option<Per>, each: bool, snapshot: &Snapshot) -> String {
    let which = match only {
        Some(Per::Cpu(cpu)) => format!("lane       CPU {cpu}"),
        Some(Per::Shared) => "lane       shared".to_owned(),
        None if each && snapshot.resets > 0 => "lanes      each".to_owned(),
        None => return String::new(),
    };
    let resets = match snapshot.resets {
        0 => "",
        _ => ", values and totals with resets not taken off; min and max since the last reset",
    };
    format!("{which}{resets}\n")
}

/// A mechanism in words.
pub(crate) fn mechanism(mechanism: Mechanism) -> &'static str {
    match mechanism {
        Mechanism::Rseq => "rseq",
        Mechanism::LockedLanes => "locked lanes",
        Mechanism::ThreadLanes => "thread lanes",
        _ => "unknown",
    }
}

/// What a region lies in, in a word.
pub(crate) fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Memfd => "memfd",
        Kind::File => "file",
        Kind::Private => "private",
        _ => "unknown",
    }
}

/// What went wrong, at the end.
pub(crate) fn complaints(metrics: &[&Metric], snapshot: &Snapshot) -> String {
    let mut text = String::new();
    if metrics.iter().any(|metric| metric.torn) {
        text += "\ntorn: it kept being reset while it was read, so it never had this value\n";
    }
    if snapshot.refused > 0 {
        text += &format!(
            "\nrefused {}: what these count is not seen here\n",
            times::times(snapshot.refused)
        );
        for refusal in &snapshot.refusals {
            text += &format!(
                "  {}: {} ({})\n",
                names::escaped(&refusal.name),
                names::escaped(&refusal.reason),
                times::times(refusal.times)
            );
        }
    }
    if !snapshot.problems.is_empty() {
        text += "\nproblems\n";
        for problem in &snapshot.problems {
            text += &format!("  {}\n", names::escaped(problem));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::samples::*;
    use super::*;
    use countersink::reader::Refusal;
    use std::time::Duration;

    #[test]
    fn torn_values_are_explained() {
        let mut torn = counter("a", 1);
        torn.torn = true;
        let snapshot = snapshot(vec![torn]);
        let metrics: Vec<&Metric> = snapshot.metrics.iter().collect();
        assert!(complaints(&metrics, &snapshot).contains("kept being reset"));
    }

    #[test]
    fn headings_and_complaints() {
        let mut snapshot = snapshot(Vec::new());
        insta::assert_snapshot!(heading("pid 4242", &info(), &snapshot), @r#"
        program    demo (pid 4242)
        mechanism  restartable sequences, registered by the C library
        region     memfd, CPU lanes: 2, library 0.1.0
        counting   since 2007-04-07 22:06:13 UTC, never reset
        "#);
        assert_eq!(complaints(&[], &snapshot), "");
        assert_eq!(lanes(None, false, &snapshot), "");
        assert_eq!(
            lanes(Some(Per::Cpu(3)), false, &snapshot),
            "lane       CPU 3\n"
        );
        let mut elsewhere = info();
        elsewhere.hindrance = "the directory is not there".to_owned();
        let wanted = "\nwanted     elsewhere: the directory is not there\ncounting ";
        assert!(heading("pid 1", &elsewhere, &snapshot).contains(wanted));
        snapshot.resets = 3;
        let each = lanes(None, true, &snapshot);
        assert!(
            each.contains("resets not taken off; min and max since"),
            "{each}"
        );
        snapshot.last_reset = Duration::from_secs(1_175_990_000);
        snapshot.refused = 5;
        snapshot.refusals = vec![Refusal {
            name: "no-name".to_owned(),
            reason: "bad name".to_owned(),
            times: 2,
        }];
        snapshot.problems = vec!["entry 7 lies outside".to_owned()];
        let text = heading("pid 4242", &info(), &snapshot) + &complaints(&[], &snapshot);
        insta::assert_snapshot!(text, @r#"
        program    demo (pid 4242)
        mechanism  restartable sequences, registered by the C library
        region     memfd, CPU lanes: 2, library 0.1.0
        counting   since 2007-04-07 22:06:13 UTC, reset 3 times, last 2007-04-07 23:53:20 UTC

        refused 5 times: what these count is not seen here
          no-name: bad name (twice)

        problems
          entry 7 lies outside
        "#);
    }
}

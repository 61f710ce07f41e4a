//! What reader-writer locks cost.

use std::collections::BTreeSet;

use countersink_experiments::rwsem::{Events, Op, Work, published, work_ns};
use countersink_harness::result::{ExperimentResult, PointResult};

use super::ratios::Ratios;
use super::{RATIOS, figure, find, header, median, numbers, ratio, rows};
use crate::output::wrap;

const LOCKS: [&str; 10] = [
    "rwsem",
    "rwsem-ownership-first",
    "rwsem-load-first",
    "rwsem-counted",
    "percpu-rwsem",
    "spinlock-count",
    "std",
    "parking_lot",
    "spin",
    "sharded",
];
/// Those of which the best is what ours are compared with.
const PEERS: [&str; 3] = ["std", "parking_lot", "spin"];
/// A peer that lets a thread do less than this much of what another does is not the best.
const FAIR: f64 = 0.5;

/// What locks cost.
pub(crate) fn render(
    measured: &ExperimentResult,
    ops: &[Op],
    work: Work,
    events: &[Events],
) -> String {
    let points = &measured.points;
    let mut text = "\nOne lock that all threads take and leave: wall ns/op (time x threads / operations), operations of all threads in \
                    kops/s, and the slowest thread's rate / the fastest one's\n"
        .to_owned();
    text += &wrap(
        "rwsem-ownership-first and rwsem-load-first are the seed's forms of try_read, before and after the series; \
         rwsem-counted counts its events, and tries for ownership first. spinlock-count is what the series removes. Of peers, sharded has a lock for each of eight shards.",
        0,
    );
    if work != Work::default() {
        text += &format!(
            "\nWith the lock: {}. Between: {}.\n",
            amount(work.load),
            amount(work.gap)
        );
    }
    for op in ops {
        for threads in thread_counts(points) {
            text += &table(points, *op, threads);
            text += &events_of(events, *op, threads);
        }
    }
    text + &ratios(measured, ops)
}

fn amount(additions: u32) -> String {
    match additions {
        0 => "nothing".to_owned(),
        1 => format!("1 addition, {} ns", figure(work_ns(1))),
        n => format!("{n} additions, {} ns", figure(work_ns(n))),
    }
}

fn thread_counts(points: &[PointResult]) -> BTreeSet<usize> {
    points.iter().map(|point| point.threads).collect()
}

fn label(op: Op, threads: usize) -> String {
    let s = if threads == 1 { "" } else { "s" };
    match op {
        Op::Mixed(_) => format!("{}, {}, {threads} thread{s}", op.name(), op.pattern()),
        _ => format!("{}, {threads} thread{s}", op.name()),
    }
}

fn table(points: &[PointResult], op: Op, threads: usize) -> String {
    let point = |lock: &str| find(points, (lock, op.name(), &op.pattern(), threads));
    let Some(first) = point("rwsem") else {
        return String::new();
    };
    let mark = if first.oversubscribed {
        " (more than CPUs)"
    } else {
        ""
    };
    let rows = rows(&LOCKS, |lock| match point(lock) {
        Some(point) => vec![
            median(point),
            format!("{:.0}", threads as f64 * 1e6 / point.wall.median),
            format!("{:.2}", point.fairness),
        ],
        None => vec!["-".to_owned(); 3],
    });
    let header = header("", ["ns/op", "kops/s", "fairness"].map(str::to_owned));
    format!(
        "\n{}{mark}\n{}",
        label(op, threads),
        numbers(&header, &rows)
    )
}

/// As the seed prints them: after the point, those that happened.
fn events_of(events: &[Events], op: Op, threads: usize) -> String {
    let of_point = |events: &&Events| events.op == op && events.threads == threads;
    let mut text = String::new();
    if let Some(events) = events.iter().find(of_point) {
        for (name, count) in events.counts.iter().filter(|(_, count)| *count > 0) {
            text += &format!("{name}={count}\n");
        }
    }
    text
}

/// The best of the peers, as far as it is fair.
fn best(points: &[PointResult], op: Op, threads: usize) -> Option<&PointResult> {
    let peers = PEERS
        .iter()
        .filter_map(|lock| find(points, (lock, op.name(), &op.pattern(), threads)));
    peers
        .filter(|point| point.fairness >= FAIR)
        .min_by(|a, b| a.wall.median.total_cmp(&b.wall.median))
}

/// What a lock is to be, at most, by the operation and the number of threads.
fn aim(lock: &str, op: Op, threads: usize, oversubscribed: bool) -> Option<f64> {
    match (lock, op) {
        ("rwsem", Op::Read | Op::TryRead) if threads <= 2 => Some(1.0),
        ("rwsem", Op::Write) if threads <= 2 => Some(1.05),
        ("rwsem", Op::Mixed(_)) => Some(1.0),
        ("percpu-rwsem", Op::Read) if threads == 1 => Some(0.3),
        ("percpu-rwsem", Op::Read) if threads == 2 && !oversubscribed => Some(0.04),
        _ => None,
    }
}

fn ratios(measured: &ExperimentResult, ops: &[Op]) -> String {
    let points = &measured.points;
    let mut ratios = Ratios::new(measured);
    let mut unfair = String::new();
    for op in ops {
        for threads in thread_counts(points) {
            let Some(best) = best(points, *op, threads) else {
                unfair += &format!("  {}: no peer is fair\n", label(*op, threads));
                continue;
            };
            for lock in [
                "rwsem",
                "rwsem-load-first",
                "rwsem-add-first",
                "percpu-rwsem",
            ] {
                let Some(ours) = find(points, (lock, op.name(), &op.pattern(), threads)) else {
                    continue;
                };
                let aim = aim(lock, *op, threads, best.oversubscribed);
                let label = format!("{lock} / {}, {}", best.variant, label(*op, threads));
                ratios.add(label, (ours, best), aim);
                if aim.is_some() && threads > 1 {
                    ratios.note(&format!("; fairness {:.2}", ours.fairness));
                }
            }
        }
    }
    format!(
        "\n{RATIOS}Here to the best of {}, as far as it is fair (at least {FAIR})\n\n{}{unfair}{}{}",
        PEERS.join(", "),
        ratios.text(),
        counting(measured, ops),
        forms(measured)
    )
}

/// What counting events costs.
fn counting(measured: &ExperimentResult, ops: &[Op]) -> String {
    let points = &measured.points;
    let mut ratios = Ratios::new(measured);
    for op in ops {
        for threads in thread_counts(points) {
            let of = |lock| find(points, (lock, op.name(), &op.pattern(), threads));
            let plain = match op {
                Op::TryRead => "rwsem-ownership-first",
                _ => "rwsem",
            };
            if let Some(pair) = of("rwsem-counted").zip(of(plain)) {
                ratios.add(label(*op, threads), pair, None);
            }
        }
    }
    format!(
        "\nWhat it costs to count events: rwsem-counted / rwsem\n\n{}",
        ratios.text()
    )
}

/// Which form of `try_read` is the better here.
fn forms(measured: &ExperimentResult) -> String {
    let points = &measured.points;
    let mut ratios = Ratios::new(measured);
    let (op, pattern) = (Op::TryRead.name(), Op::TryRead.pattern());
    for threads in thread_counts(points) {
        let of = |lock| find(points, (lock, op, &pattern, threads));
        for (first, other) in [
            ("rwsem-ownership-first", "rwsem-load-first"),
            ("rwsem", "rwsem-ownership-first"),
            ("rwsem", "rwsem-load-first"),
        ] {
            if let Some(pair) = of(first).zip(of(other)) {
                let label = format!("{first} / {other}, {}", label(Op::TryRead, threads));
                ratios.add(label, pair, None);
            }
        }
    }
    let text = ratios.text();
    if text.is_empty() {
        return text;
    }
    format!(
        "\nThe forms of try_read on this machine; rwsem is the default, on x86-64 an addition\n\n{text}"
    )
}

/// The seed's table beside what the same gives here.
pub(crate) fn render_published(points: &[PointResult]) -> String {
    let of = |lock, threads| {
        find(
            points,
            (
                lock,
                published::OP.name(),
                &published::OP.pattern(),
                threads,
            ),
        )
    };
    let kops = |point: &PointResult| point.threads as f64 * 1e6 / point.wall.median;
    let change = |[before, after]: [f64; 2]| format!("{:+.1} %", 100.0 * (after / before - 1.0));
    let mut text = format!(
        "\nThe published table beside this machine: try_read with a load of {} additions, kops/s before (loaded first) and after (ownership \
         first)\n",
        published::WORK.load
    );
    let mut rows = Vec::new();
    let (mut held, mut compared) = ([0; 2], 0);
    for (at, threads) in published::THREADS.into_iter().enumerate() {
        let mut row = vec![threads.to_string()];
        for machine in published::MACHINES {
            let [before, after] = machine.rates[at];
            row.extend([
                format!("{before:.0}"),
                format!("{after:.0}"),
                change([before, after]),
            ]);
        }
        let here = of("rwsem-load-first", threads).zip(of("rwsem-ownership-first", threads));
        let Some((before, after)) = here else {
            continue;
        };
        let rates = [kops(before), kops(after)];
        let found = after.ratio_to(before);
        row.extend([format!("{:.0}", rates[0]), format!("{:.0}", rates[1])]);
        // A ratio of times: below 1 the second is better.
        row.push(found.as_ref().map_or_else(
            || change(rates),
            |found| format!("{}; {}", change(rates), ratio(found)),
        ));
        rows.push(row);
        if let Some([low, high]) = found.and_then(|found| found.ci95)
            && (low > 1.0 || high < 1.0)
        {
            compared += 1;
            for (held, machine) in held.iter_mut().zip(published::MACHINES) {
                let [before, after] = machine.rates[at];
                *held += usize::from((after > before) == (high < 1.0));
            }
        }
    }
    let of_machine = |machine: published::Machine| {
        [
            format!("{}: before", machine.name),
            "after".to_owned(),
            "change".to_owned(),
        ]
    };
    let names = published::MACHINES.into_iter().flat_map(of_machine);
    let here = ["here: before", "after", "change; time after / before"].map(str::to_owned);
    text += &numbers(&header("threads", names.chain(here)), &rows);
    let told = held.iter().zip(published::MACHINES);
    let told: Vec<String> = told
        .map(|(held, machine)| format!("{held} of {}", machine.name))
        .collect();
    text + &format!(
        "  Of {compared} differences that can be told here, in the published direction: {}\n",
        told.join(", ")
    )
}

//! Results in other forms than JSON, made from what was saved.

use crate::result::{ExperimentResult, PointResult, Results};
use crate::verdict::against_first;

/// A form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values: a line for each point (RFC 4180).
    Csv,
    /// What Go's benchmarks print, a line for each sample, for `benchstat`.
    Go,
    /// Tables for a page or a mail.
    Markdown,
    /// The JSON again, as this version writes it.
    Json,
}

/// The text of results in a form.
pub fn render(results: &Results, format: Format) -> String {
    match format {
        Format::Csv => csv(results),
        Format::Go => go(results),
        Format::Markdown => markdown(results),
        // Every field can be written.
        Format::Json => results.to_json().unwrap_or_default(),
    }
}

fn points(results: &Results) -> impl Iterator<Item = (&ExperimentResult, &PointResult)> {
    let of = |experiment| move |point| (experiment, point);
    results
        .experiments
        .iter()
        .flat_map(move |experiment| experiment.points.iter().map(of(experiment)))
}

/// A field, in quotes where it has to be.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn csv(results: &Results) -> String {
    let mut text = "experiment,variant,op,pattern,threads,unit,median,ci95_low,ci95_high,mean,stddev,min,max,fairness,samples,repeated,disturbed,sound,partial\n"
        .to_owned();
    for (experiment, point) in points(results) {
        let wall = &point.wall;
        let [low, high] = match wall.ci95 {
            Some(ends) => ends.map(|end| end.to_string()),
            None => [String::new(), String::new()],
        };
        let texts = [&experiment.name, &point.variant, &point.op, &point.pattern];
        let fields = texts.map(|text| field(text)).join(",");
        text += &format!(
            "{fields},{},{},{},{low},{high},{},{},{},{},{},{},{},{},{},{}\n",
            point.threads,
            field(&point.unit),
            wall.median,
            wall.mean,
            wall.stddev,
            wall.min,
            wall.max,
            point.fairness,
            point.samples.len(),
            point.repeated,
            point.disturbed(),
            point.is_sound(),
            experiment.partial
        );
    }
    text
}

/// A part of a benchmark's name: it ends at a space, and `/` and `=` have a meaning.
fn part(text: &str) -> String {
    let is_kept = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '+' | '%');
    let text: String = text
        .chars()
        .map(|c| if is_kept(c) { c } else { '_' })
        .collect();
    // What replaces two in a row is one.
    let parts: Vec<&str> = text.split('_').filter(|part| !part.is_empty()).collect();
    parts.join("_")
}

fn go(results: &Results) -> String {
    let machine = &results.machine;
    let mut text = String::new();
    let arch = machine.arch.as_deref().map(|arch| match arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    });
    let lines = [
        ("goos", machine.os.as_deref()),
        ("goarch", arch),
        ("cpu", machine.cpu_model.as_deref()),
        ("kernel", machine.kernel.as_deref()),
    ];
    for (key, value) in lines {
        if let Some(value) = value {
            text += &format!("{key}: {}\n", value.replace(['\n', '\r'], " "));
        }
    }
    for (experiment, point) in points(results) {
        let mut name = part(&experiment.name);
        if let Some(first) = name.get(..1) {
            name = first.to_uppercase() + &name[1..];
        }
        if !point.is_sound() {
            // No line of a benchmark begins like this, so it is passed over.
            text += &format!(
                "# more than a quarter of the samples was disturbed: the {} below\n",
                point.samples.len()
            );
        }
        for sample in &point.samples {
            text += &format!(
                "Benchmark{name}/op={}/pattern={}/variant={}/threads={}-{}\t1\t{sample} {}\n",
                part(&point.op),
                part(&point.pattern),
                part(&point.variant),
                point.threads,
                point.threads,
                point.unit
            );
        }
    }
    text
}

fn markdown(results: &Results) -> String {
    let machine = &results.machine;
    let known = |value: &Option<String>| cell(value.as_deref().unwrap_or("unknown"));
    let mut text = format!(
        "CPU: {}, kernel: {}, hypervisor: {}\n",
        known(&machine.cpu_model),
        known(&machine.kernel),
        known(&machine.hypervisor)
    );
    for (name, value) in &machine.conditions {
        text += &format!("{}: {}\n", cell(name), cell(value));
    }
    for experiment in &results.experiments {
        text += &of_experiment(experiment);
    }
    text
}

fn of_experiment(experiment: &ExperimentResult) -> String {
    let mut text = format!("\n## {}\n\n", cell(&experiment.name));
    if experiment.partial {
        text += "The run was ended before all points were measured.\n\n";
    }
    text += "| variant | operation | pattern | threads | median | 95 % interval | fairness | to the first variant | verdict |\n\
             |---|---|---|--:|--:|---|--:|---|---|\n";
    let judged = against_first(experiment);
    let mut verdicts = judged.iter().peekable();
    for point in &experiment.points {
        let interval = point.wall.ci95.map_or("-".to_owned(), |[low, high]| {
            format!("{low:.3} to {high:.3}")
        });
        let texts = [&point.variant, &point.op, &point.pattern];
        let cells = texts.map(|text| cell(text)).join(" | ");
        let mark = if point.is_sound() { "" } else { " !" };
        // In the order of the points.
        let found = verdicts.next_if(|judged| std::ptr::eq(judged.point, point));
        let verdict = found.map_or(" | ".to_owned(), |judged| {
            let ratio = judged.ratio.of_medians;
            let interval = judged.ratio.ci95.map_or(String::new(), |[low, high]| {
                format!(" [{low:.3}, {high:.3}]")
            });
            format!("{ratio:.3}{interval} | {}", judged.verdict.name())
        });
        text += &format!(
            "| {cells} | {} | {:.3} {}{mark} | {interval} | {:.2} | {verdict} |\n",
            point.threads,
            point.wall.median,
            cell(&point.unit),
            point.fairness
        );
    }
    if experiment.points.iter().any(|point| !point.is_sound()) {
        text += "\n!: more than a quarter of the samples was disturbed\n";
    }
    text
}

/// What breaks no table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
        .replace(|c: char| c.is_control(), " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::read::sheet;

    fn results() -> Results {
        let text = r#"{"schema":"countersink-results/1","machine":{"os":"linux","arch":"x86_64","cpu_model":"A|B","kernel":"6.1"},
            "experiments":[{"name":"check-before-set","points":[{"variant":"plain","op":"write","pattern":"32 KiB, \"x\"",
            "threads":2,"unit":"ns/op","wall":{"mean":1.5,"median":1.5,"stddev":0.5,"min":1,"max":2,"ci95":[1,2]},
            "fairness":0.5,"samples":[1,2]}]}]}"#;
        Results::from_json(text).expect("a result")
    }

    #[test]
    fn csv_quotes_what_has_to_be() {
        let text = render(&results(), Format::Csv);
        let line = text.lines().nth(1).expect("a point");
        assert_eq!(
            line,
            r#"check-before-set,plain,write,"32 KiB, ""x""",2,ns/op,1.5,1,2,1.5,0.5,1,2,0.5,2,0,0,true,false"#
        );
    }

    /// What is written is read back by our own reader of Go's form.
    #[test]
    fn go_has_a_line_for_each_sample() {
        let text = render(&results(), Format::Go);
        let expected = "goos: linux\ngoarch: amd64\ncpu: A|B\nkernel: 6.1\n\
            BenchmarkCheck_before_set/op=write/pattern=32_KiB_x/variant=plain/threads=2-2\t1\t1 ns/op\n\
            BenchmarkCheck_before_set/op=write/pattern=32_KiB_x/variant=plain/threads=2-2\t1\t2 ns/op\n";
        assert_eq!(text, expected);
        let sheet = sheet("x", &text).expect("Go's");
        assert_eq!(sheet.series.len(), 1);
        assert_eq!(sheet.series[0].values, [1.0, 2.0]);
    }

    #[test]
    fn markdown_is_a_table() {
        let text = render(&results(), Format::Markdown);
        assert!(
            text.starts_with("CPU: A\\|B, kernel: 6.1, hypervisor: unknown\n"),
            "{text}"
        );
        let row =
            r#"| plain | write | 32 KiB, "x" | 2 | 1.500 ns/op | 1.000 to 2.000 | 0.50 |  |  |"#;
        assert!(text.ends_with(&format!("{row}\n")), "{text}");
    }

    /// What is not to be trusted says so in every form.
    #[test]
    fn disturbed_points_and_partial_runs_are_marked() {
        use crate::surroundings::{Disturbance, Surroundings};
        let mut results = results();
        let experiment = &mut results.experiments[0];
        experiment.partial = true;
        let disturbed = Surroundings {
            disturbed: vec![Disturbance::Steal],
            ..Surroundings::default()
        };
        experiment.points[0].surroundings = vec![disturbed];
        experiment.points[0].repeated = 3;
        assert!(render(&results, Format::Csv).ends_with(",2,3,1,false,true\n"));
        let go = render(&results, Format::Go);
        assert!(
            go.contains(
                "# more than a quarter of the samples was disturbed: the 2 below\nBenchmark"
            ),
            "{go}"
        );
        assert_eq!(sheet("x", &go).expect("Go's").series[0].values, [1.0, 2.0]);
        let markdown = render(&results, Format::Markdown);
        assert!(markdown.contains("| 1.500 ns/op ! |"), "{markdown}");
        assert!(markdown.contains("ended before all points"), "{markdown}");
    }

    #[test]
    fn markdown_has_verdicts() {
        let mut results = results();
        let points = &mut results.experiments[0].points;
        points[0].samples = vec![1.5; 12];
        let mut other = points[0].clone();
        other.variant = "checked".to_owned();
        points.push(other);
        let text = render(&results, Format::Markdown);
        assert!(
            text.ends_with("| 0.50 | 1.000 [1.000, 1.000] | same |\n"),
            "{text}"
        );
    }

    #[test]
    fn json_is_read_back() {
        let text = render(&results(), Format::Json);
        assert_eq!(Results::from_json(&text).expect("a result"), results());
    }
}

//! `countersink list`: which programs have a region.

use std::path::PathBuf;

use clap::Args;
use countersink::reader::{Kind, OpenError, Region, files_in, find};
use serde::Serialize;

use crate::output::{self, print};
use crate::show::{kind, mechanism};
use crate::table::table;
use crate::{names, target};

/// What is said below the options.
const HELP: &str = "\
`torn` marks a region that is there in part only: something in it could not be right, or could\n\
not be read. `show` says what.";

/// What `list` takes.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// Include the region files of a directory; by default that of COUNTERSINK_DIR, if it is set
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What is printed as JSON.
#[derive(Debug, Serialize)]
struct Document {
    schema: &'static str,
    regions: Vec<Row>,
    /// What looks like a region and cannot be read, a sentence each.
    unreadable: Vec<String>,
    /// Processes that may not be looked into.
    hidden: usize,
}

#[derive(Debug, Serialize)]
struct Row {
    pids: Vec<u32>,
    program: String,
    state: &'static str,
    /// Something in it could not be right, or could not be read.
    torn: bool,
    kind: &'static str,
    mechanism: &'static str,
    metrics: usize,
    /// The region file.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<PathBuf>,
}

/// Looks for regions and prints them.
///
/// # Errors
/// Processes or a directory that cannot be listed; standard output that cannot be written.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let document = look(options)?;
    if options.json {
        print(&output::json(&document, true)?)
    } else {
        print(&render(&document))
    }
}

fn look(options: &Options) -> anyhow::Result<Document> {
    let found = find()?;
    let mut document = Document {
        schema: "countersink-list/1",
        regions: Vec::new(),
        unreadable: Vec::new(),
        hidden: found.hidden,
    };
    let mut seen = Vec::new();
    for sighting in found.regions {
        seen.extend(sighting.region.as_ref().ok().and_then(Region::id));
        let region = sighting.region;
        let path = region
            .as_ref()
            .ok()
            .and_then(|r| file_of(&sighting.pids, r));
        document.add(sighting.pids, path, region);
    }
    if let Some(directory) = target::directory(options.dir.as_deref()) {
        for file in files_in(&directory)? {
            let id = file.region.as_ref().ok().and_then(Region::id);
            if id.is_none_or(|id| !seen.contains(&id)) {
                document.add(Vec::new(), Some(file.path), file.region);
            }
        }
    }
    Ok(document)
}

/// Where a live region's file is, as its processes see it; `None` for memory, and for a file that was
/// removed.
fn file_of(pids: &[u32], region: &Region) -> Option<PathBuf> {
    let (Kind::File, Some((_, inode))) = (region.info().kind, region.id()) else {
        return None;
    };
    let inode = inode.to_string();
    let of_process = |pid: &u32| {
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        // Addresses, permissions, offset, device, inode, then the path, which may have spaces.
        let path = maps.lines().find_map(|line| {
            let is_it = line.split_whitespace().nth(4) == Some(&inode);
            is_it
                .then(|| line.find('/').and_then(|at| line.get(at..)))
                .flatten()
        })?;
        (path.ends_with(".countersink")).then(|| PathBuf::from(path))
    };
    pids.iter().find_map(of_process)
}

impl Document {
    fn add(&mut self, pids: Vec<u32>, path: Option<PathBuf>, region: Result<Region, OpenError>) {
        let read = region
            .map_err(|error| error.to_string())
            .and_then(|region| match region.snapshot() {
                Ok(snapshot) => Ok((region, snapshot)),
                Err(error) => Err(error.to_string()),
            });
        let (region, snapshot) = match read {
            Ok(read) => read,
            Err(sentence) => return self.unreadable.push(sentence),
        };
        let info = region.info();
        self.regions.push(Row {
            pids,
            program: info.program.clone(),
            state: target::state(region.state()),
            torn: !snapshot.problems.is_empty(),
            kind: kind(info.kind),
            mechanism: mechanism(info.mechanism),
            metrics: snapshot.metrics.len(),
            path,
        });
    }
}

fn render(document: &Document) -> String {
    let mut text = String::new();
    if document.regions.is_empty() {
        text += "no program has a region\n";
    } else {
        let rows: Vec<Vec<String>> = document.regions.iter().map(cells).collect();
        let columns = [
            "pids",
            "program",
            "state",
            "kind",
            "mechanism",
            "metrics",
            "file",
        ];
        text += &table(&columns, &rows, 5..6);
    }
    if !document.unreadable.is_empty() {
        text += "\nnot readable\n";
    }
    for sentence in &document.unreadable {
        text += &format!("  {}\n", names::escaped(sentence));
    }
    text += &match document.hidden {
        0 => String::new(),
        1 => "\none process may not be looked into\n".to_owned(),
        n => format!("\n{n} processes may not be looked into\n"),
    };
    text
}

fn cells(row: &Row) -> Vec<String> {
    let pids: Vec<String> = row.pids.iter().map(u32::to_string).collect();
    let pids = if pids.is_empty() {
        "-".to_owned()
    } else {
        pids.join(",")
    };
    let path = row.path.as_ref().map(|path| path.display().to_string());
    let torn = if row.torn { ", torn" } else { "" };
    vec![
        pids,
        names::escaped(&row.program),
        format!("{}{torn}", row.state),
        row.kind.to_owned(),
        row.mechanism.to_owned(),
        row.metrics.to_string(),
        names::escaped(&path.unwrap_or_default()),
    ]
}

//! `countersink prune`: removes region files that dead programs have left.

use std::path::{Path, PathBuf};

use clap::Args;
use countersink::reader::{Life, Pruned, RegionFile, State, files_in, prune};

use crate::output::print;
use crate::{names, target};

/// What `prune` takes.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The directory; by default that of COUNTERSINK_DIR
    dir: Option<PathBuf>,

    /// Only say what would be done; half-made files, which are removed too, are not looked at
    #[arg(long)]
    dry_run: bool,
}

/// Removes files whose programs are proven dead, and says what became of each.
///
/// # Errors
/// No directory, or one that cannot be read or that others may write to; standard output that cannot be
/// written.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let Some(directory) = target::directory(options.dir.as_deref()) else {
        anyhow::bail!("no directory: name one, or set COUNTERSINK_DIR");
    };
    let shown = names::escaped(&directory.display().to_string());
    let lines: Vec<String> = if options.dry_run {
        files_in(&directory)?.iter().map(would).collect()
    } else {
        let pruned = prune(&directory)
            .map_err(|error| anyhow::anyhow!("cannot look into {shown}: {error}"))?;
        pruned.iter().map(did).collect()
    };
    if lines.is_empty() {
        return print(&format!("{shown} has no region files\n"));
    }
    print(&lines.concat())
}

fn did(pruned: &Pruned) -> String {
    match pruned {
        Pruned::Removed(path) => line("removed", path, ""),
        Pruned::Alive(path) => line("kept", path, "it is in use"),
        Pruned::Kept(path, why) => line("kept", path, why),
        _ => String::new(),
    }
}

fn would(file: &RegionFile) -> String {
    let region = match &file.region {
        Ok(region) => region,
        Err(error) => return line("would keep", &file.path, &error.to_string()),
    };
    match (region.state(), region.info().creator()) {
        (State::Alive, _) => line("would keep", &file.path, "it is in use"),
        (State::Dead, Life::Alive) => {
            let why = "nobody has locked it, and the process that made it lives";
            line("would keep", &file.path, why)
        }
        (State::Dead, _) => line("would remove", &file.path, ""),
        _ => line(
            "would keep",
            &file.path,
            "whether it is in use cannot be told",
        ),
    }
}

fn line(what: &str, path: &Path, why: &str) -> String {
    let path = names::escaped(&path.display().to_string());
    match why {
        "" => format!("{what} {path}\n"),
        why => format!("{what} {path}: {}\n", names::escaped(why)),
    }
}

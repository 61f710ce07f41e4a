//! Tables.

use std::ops::Range;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// A table without lines. The columns of numbers, a range, are aligned to the right.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>], numbers: Range<usize>) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header);
    table.add_rows(rows);
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if numbers.contains(&at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines = table.to_string();
    let lines = lines.lines().map(|line| format!("{}\n", line.trim_end()));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [["a", "x", "1"], ["bc", "yy", "10"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        let text = table(&["name", "kind", "value"], &rows, 2..3);
        assert_eq!(
            text,
            "name  kind  value\na     x         1\nbc    yy       10\n"
        );
    }
}

//! Tables for the terminal: columns as wide as their widest cell.

use stampede_model::Printable;

/// Rows under a head.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<'a>(head: impl IntoIterator<Item = &'a str>) -> Self {
        Self { rows: vec![head.into_iter().map(str::to_uppercase).collect()] }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        // A line break of a payload must not make a row, nor another control character move the cursor.
        self.rows.push(cells.iter().map(|cell| Printable::line(cell).to_string()).collect());
    }

    /// Prints the table, or the sentence `empty` when there is no row.
    pub(crate) fn print(&self, empty: &str) {
        if self.rows.len() == 1 {
            println!("{empty}");
            return;
        }
        print!("{}", self.text());
    }

    fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| {
                    let gap = width - cell.chars().count();
                    if cell.parse::<f64>().is_ok() {
                        format!("{}{cell}", " ".repeat(gap))
                    } else {
                        format!("{cell}{}", " ".repeat(gap))
                    }
                })
                .collect();
            text.push_str(cells.join("  ").trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_right_and_control_characters_are_escaped() {
        let mut table = Table::new(["queue", "waiting"]);
        table.row(vec!["a\u{1b}[2J\nb\u{202e}".into(), "5".into()]);
        let wanted = "QUEUE                WAITING\na\\u001b[2J\\nb\\u202e        5\n";
        assert_eq!(table.text(), wanted);
    }
}

//! Texts in cells of spreadsheets, which must not become formulas.
//!
//! A spreadsheet takes a cell that begins with `=`, `+`, `-` or `@` for a formula, which may send the whole table somewhere. Such
//! a cell is written with an apostrophe before it. The same is done if such a character follows a delimiter or a line break
//! inside the cell: a program that splits at `;` would begin a cell there.

/// Characters with which a formula begins; a tab or line break before it is skipped by some programs.
const FORMULA: [char; 7] = ['=', '+', '-', '@', '\t', '\r', '\n'];
/// Characters at which some program may begin another cell.
pub const DELIMITERS: [char; 5] = [',', ';', '\t', '\r', '\n'];

/// Whether a spreadsheet would take the text for a formula, or for a text of ours that is none.
fn is_formula(text: &str) -> bool {
    text.trim_start_matches(['\'', '"']).starts_with(FORMULA)
}

/// The cell with an apostrophe before every part that could be taken for a formula.
pub fn guarded(cell: &str) -> String {
    let mut guarded = String::with_capacity(cell.len());
    for part in cell.split_inclusive(DELIMITERS) {
        if is_formula(part) {
            guarded.push('\'');
        }
        guarded.push_str(part);
    }
    guarded
}

/// A cell without the apostrophes that keep it from being a formula.
pub fn plain(cell: &str) -> String {
    let mut plain = String::with_capacity(cell.len());
    for part in cell.split_inclusive(DELIMITERS) {
        plain.push_str(match part.strip_prefix('\'') {
            Some(rest) if is_formula(rest) => rest,
            _ => part,
        });
    }
    plain
}

/// JSON for a cell: characters that could begin a formula are written as `\u003d`, so that it stays the same JSON. Outside of
/// texts, JSON has none but the signs of numbers.
pub fn guarded_json(json: &str) -> String {
    let mut guarded = String::with_capacity(json.len());
    let (mut is_in_text, mut is_escaped, mut begins) = (false, false, false);
    for c in json.chars() {
        let is_end = c == '"' && !is_escaped;
        if is_in_text && begins && FORMULA.contains(&c) {
            guarded.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            guarded.push(c);
        }
        if is_end {
            (is_in_text, begins) = (!is_in_text, true);
        } else if is_in_text {
            // Quotes and apostrophes before a formula are skipped by some programs.
            let is_skipped = c == '\\' || c == '"' || c == '\'';
            begins = DELIMITERS.contains(&c) || (begins && is_skipped);
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    guarded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_in_a_cell_is_no_formula_and_stays_the_same() {
        let nasty = serde_json::json!({
            "=a": ["x", "=1+1", "+1", "-1", "@x", "x;=1", "x,\"=1", "'=1", "a=b", "01890a5d-ac96"],
            "number": -5, "text": "a\\\"=1",
        });
        let text = guarded_json(&nasty.to_string());
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), nasty);
        for part in text.split(DELIMITERS) {
            let begin = part.trim_start_matches(['"', '\'', '\\']);
            assert!(!begin.starts_with(['=', '+', '@']), "{part} in {text}");
        }
        assert!(text.contains("a=b") && text.contains("01890a5d-ac96") && text.contains(":-5"));
    }
}

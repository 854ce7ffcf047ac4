//! What sequences may differ in: the rows of docs/deviations.md that name a reason which the library counts.

use std::sync::OnceLock;

const DEVIATIONS: &str = include_str!("../../../docs/deviations.md");
const WORD: &str = "differential `";

/// The reasons that rows name.
pub fn reasons() -> &'static [&'static str] {
    static REASONS: OnceLock<Vec<&str>> = OnceLock::new();
    REASONS.get_or_init(|| DEVIATIONS.lines().filter_map(reason).collect())
}

fn reason(line: &str) -> Option<&str> {
    let row = line.strip_prefix('|')?;
    let last = row.trim_end().trim_end_matches('|').rsplit('|').next()?;
    last.split(WORD).nth(1)?.split('`').next()
}

/// Is there a row that names this reason, which no statistics can tell?
pub fn named(reason: &str) -> Option<&'static str> {
    reasons().iter().find(|known| **known == reason).copied()
}

/// The row, if any, that a statistics line says was met.
pub fn met(line: &str) -> Option<&'static str> {
    let counted = |reason: &&&str| line.contains(&format!("\"{reason}\":"));
    reasons().iter().find(counted).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_name_their_reasons() {
        assert!(reasons().contains(&"relayed"));
        assert_eq!(named("killed"), Some("killed"));
        assert_eq!(
            reason("| a `x` | b | e2e `c`; differential `d` |"),
            Some("d")
        );
        assert_eq!(reason("| a differential `x` | b | e2e `c` |"), None);
        assert_eq!(
            met(r#"{"fallback_reasons":{"relayed":1}}"#),
            Some("relayed")
        );
        assert_eq!(met(r#"{"fallback_reasons":{"passed-on":1}}"#), None);
    }
}

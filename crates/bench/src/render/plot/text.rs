//! How much room words take. An estimate: the fonts are the reader's.

/// The width of text in units of the drawing.
pub fn width(text: &str, size: f64) -> f64 {
    text.chars().map(|c| share(c) * size).sum()
}

fn share(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.3,
        ' ' | 'f' | 't' | 'r' | '(' | ')' | '/' | '-' => 0.4,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.92,
        c if c.is_ascii_uppercase() => 0.7,
        c if c.is_ascii() => 0.59,
        'µ' | '×' | '·' | '–' | '−' | '²' => 0.62,
        _ => 1.0,
    }
}

/// Cut where it would not fit.
pub fn fitting(text: &str, size: f64, most: f64) -> String {
    if width(text, size) <= most {
        return text.to_string();
    }
    let mut room = most - width("…", size);
    let fits = |c: &char| {
        room -= share(*c) * size;
        room >= 0.0
    };
    let cut: String = text.chars().take_while(fits).collect();
    cut.trim_end().to_string() + "…"
}

/// Lines of whole words, each no wider than `most`.
pub fn wrap(text: &str, size: f64, most: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line, size) + width(word, size) + 0.4 * size <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(fitting(word, size, most)),
        }
    }
    lines
}

/// Moves places apart, as little as need be, until each has `gap`; they stay within `low` and `high` as far as they can.
pub fn spread(wanted: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    let mut places = wanted.to_vec();
    let mut least = low;
    for &index in &order {
        places[index] = places[index].max(least);
        least = places[index] + gap;
    }
    let mut most = high;
    for &index in order.iter().rev() {
        places[index] = places[index].min(most);
        most = places[index] - gap;
    }
    places
}

#[cfg(test)]
mod tests;

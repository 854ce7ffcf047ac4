//! Numbers that JSON cannot hold. It writes null for an infinite or undefined number; these read it back as one that is
//! undefined, so that a single ratio over nothing does not make a whole run unreadable.

use serde::{Deserialize, Deserializer};

pub fn number<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

pub fn pairs<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(f64, f64)>, D::Error> {
    let pairs = Vec::<(Option<f64>, Option<f64>)>::deserialize(from)?;
    let known = |(x, y): (Option<f64>, Option<f64>)| Some((x?, y?));
    Ok(pairs.into_iter().filter_map(known).collect())
}

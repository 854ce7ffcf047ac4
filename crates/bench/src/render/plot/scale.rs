//! From values to places on the drawing, and which values are worth a mark.

use crate::findings::{Axis, Measure, Scale as Kind};
use crate::render::format;

/// One axis: what it spans, where that lies, and its marks.
pub struct Scale {
    kind: Kind,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    unit: Measure,
}

/// What an axis must span whatever its values are: factors are read from 1 on.
pub fn neutral(axis: &Axis) -> Option<f64> {
    (axis.unit == Measure::Factor).then_some(1.0)
}

#[derive(Debug, PartialEq)]
pub struct Tick {
    pub value: f64,
    pub label: String,
}

impl Scale {
    /// Spans `values` with room at the ends; None where nothing can be shown, as of zeroes on a logarithmic axis.
    pub fn new(axis: &Axis, values: impl Iterator<Item = f64>) -> Option<Scale> {
        let shown = values.filter(|&value| can_be_shown(axis.scale, value));
        let (low, high) = shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        if low > high {
            return None;
        }
        let (low, high) = match axis.scale {
            Kind::Linear => linear_domain(low, high),
            Kind::Log2 | Kind::Log10 => logarithmic_domain(low, high),
        };
        Some(Scale {
            kind: axis.scale,
            low,
            high,
            from: 0.0,
            to: 1.0,
            unit: axis.unit,
        })
    }

    /// Between these places of the drawing; `from` may be greater, as it is for an axis that goes up.
    pub fn between(self, from: f64, to: f64) -> Scale {
        Scale { from, to, ..self }
    }

    /// The places that it lies between.
    pub fn ends(&self) -> (f64, f64) {
        (self.from, self.to)
    }

    /// None outside of the span.
    pub fn place(&self, value: f64) -> Option<f64> {
        let slack = 1e-9;
        let share = (self.measure(value)? - self.measure(self.low)?)
            / (self.measure(self.high)? - self.measure(self.low)?);
        let inside = (-slack..=1.0 + slack).contains(&share);
        inside.then_some(self.from + (self.to - self.from) * share)
    }

    /// Where bars begin: where nothing is, or at the low end of an axis that has no such place.
    pub fn base(&self) -> f64 {
        self.place(self.nothing()).unwrap_or(self.from)
    }

    pub fn has_base(&self) -> bool {
        self.place(self.nothing()).is_some()
    }

    /// Whether a line there tells more from less, or better from worse.
    pub fn is_landmark(&self, value: f64) -> bool {
        value == self.nothing() || self.unit == Measure::Factor && value == 1.0
    }

    pub fn is_below_base(&self, value: f64) -> bool {
        value < self.nothing()
    }

    /// The value that says that nothing is there, or nothing has changed.
    fn nothing(&self) -> f64 {
        match (self.kind, self.unit) {
            (Kind::Linear, _) => 0.0,
            (_, Measure::Factor) => 1.0,
            _ => f64::NAN,
        }
    }

    pub fn is_linear(&self) -> bool {
        self.kind == Kind::Linear
    }

    /// As many marks as fit with `room` for each label, which gets to see it, up to seven.
    pub fn ticks(&self, room: impl Fn(&str) -> f64) -> Vec<Tick> {
        let space = (self.to - self.from).abs();
        let mut last = Vec::new();
        for values in self.candidates() {
            let ticks: Vec<Tick> = values
                .into_iter()
                .filter(|&value| self.place(value).is_some())
                .map(|value| Tick {
                    value,
                    label: format::tick(self.unit, value),
                })
                .collect();
            if ticks.len() < 2 && !last.is_empty() {
                break;
            }
            let fit = ticks.windows(2).all(|pair| {
                let apart = |tick: &Tick| self.place(tick.value).unwrap_or(self.from);
                let need = (room(&pair[0].label) + room(&pair[1].label)) / 2.0;
                (apart(&pair[1]) - apart(&pair[0])).abs() >= need.min(space)
            });
            let few = ticks.len() <= 7;
            last = ticks;
            if fit && few {
                break;
            }
        }
        last
    }

    fn measure(&self, value: f64) -> Option<f64> {
        match self.kind {
            Kind::Linear => Some(value),
            Kind::Log2 | Kind::Log10 => (value > 0.0).then(|| value.ln()),
        }
    }

    /// Sets of marks, the densest first.
    fn candidates(&self) -> Vec<Vec<f64>> {
        match self.kind {
            Kind::Linear => self.even_steps(),
            Kind::Log2 => self.powers_of_two(),
            Kind::Log10 => self.decades(),
        }
    }

    fn even_steps(&self) -> Vec<Vec<f64>> {
        let span = self.high - self.low;
        let binary = self.unit == Measure::Bytes && span >= 16.0;
        let base: f64 = if binary { 2.0 } else { 10.0 };
        let factors: &[f64] = if binary { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let power = (span / 10.0).log(base).floor().clamp(-300.0, 300.0) as i32;
        let steps = (power..power + 6)
            .flat_map(|power| factors.iter().map(move |factor| factor * base.powi(power)));
        steps
            .map(|step| {
                let (first, last) = ((self.low / step).ceil(), (self.high / step).floor());
                let count = (last - first).clamp(0.0, 100.0) as usize;
                (0..=count)
                    .map(|index| (first + index as f64) * step)
                    .collect()
            })
            .collect()
    }

    fn powers_of_two(&self) -> Vec<Vec<f64>> {
        let (first, last) = (
            self.low.log2().floor() as i32,
            self.high.log2().ceil() as i32,
        );
        if last - first < 3 {
            return self.decades();
        }
        let every = |stride: usize| {
            let inside = (first..=last).filter(move |power| power.rem_euclid(stride as i32) == 0);
            inside.map(|power| 2f64.powi(power)).collect()
        };
        (1..=16).chain([32, 64, 128, 256]).map(every).collect()
    }

    fn decades(&self) -> Vec<Vec<f64>> {
        const WITHIN: [&[f64]; 4] = [
            &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0],
            &[1.0, 2.0, 3.0, 5.0],
            &[1.0, 2.0, 5.0],
            &[1.0],
        ];
        let (first, last) = (
            self.low.log10().floor() as i32,
            self.high.log10().ceil() as i32,
        );
        let within = WITHIN.iter().map(|factors| {
            let decades = (first..=last).map(|power| 10f64.powi(power));
            decades
                .flat_map(|decade| factors.iter().map(move |factor| factor * decade))
                .collect()
        });
        let apart = [2usize, 3, 4, 6, 8, 12, 24, 48, 96]
            .into_iter()
            .map(|stride| {
                let inside =
                    (first..=last).filter(move |power| power.rem_euclid(stride as i32) == 0);
                inside.map(|power| 10f64.powi(power)).collect()
            });
        within.chain(apart).collect()
    }
}

/// Whose differences still are numbers.
const LARGEST: f64 = 1e300;
const SMALLEST: f64 = 1e-290;

fn can_be_shown(kind: Kind, value: f64) -> bool {
    value.abs() <= LARGEST && (kind == Kind::Linear || value >= f64::MIN_POSITIVE)
}

/// Lengths are only honest from zero on.
fn linear_domain(low: f64, high: f64) -> (f64, f64) {
    let (low, high) = (low.min(0.0), high.max(0.0));
    let span = high - low;
    if span < SMALLEST {
        return (0.0, 1.0);
    }
    let room = |end: f64| if end == 0.0 { 0.0 } else { span * 0.04 };
    (low - room(low), high + room(high))
}

fn logarithmic_domain(low: f64, high: f64) -> (f64, f64) {
    let room = if low == high {
        2.0
    } else {
        (high / low).min(f64::MAX).powf(0.04).max(1.02)
    };
    (
        (low / room).max(f64::MIN_POSITIVE),
        (high * room).min(f64::MAX),
    )
}

#[cfg(test)]
mod tests;

//! In what two runs differ as a whole: other reasons than the software why figures may have changed.

use crate::machine::Calibration;
use crate::results::{Run, Skipped};

/// Sentences.
pub fn differences(old: &Run, new: &Run) -> Vec<String> {
    let mut found = settings(old, new);
    found.extend(drift(&old.machine.calibration, &new.machine.calibration));
    for (run, which) in [(old, "old"), (new, "new")] {
        if !run.complete {
            found.push(format!("the {which} run is partial"));
        }
        if run.disturbed_kept > 0 {
            found.push(format!(
                "the {which} run counts {} rounds that the machine disturbed",
                run.disturbed_kept
            ));
        }
    }
    found
}

fn settings(old: &Run, new: &Run) -> Vec<String> {
    let of = |run: &Run| {
        let machine = &run.machine;
        [
            ("CPU", machine.cpu.clone()),
            ("number of CPUs", machine.cpus.len().to_string()),
            ("kernel", machine.kernel.clone()),
            ("TCP congestion control", machine.congestion.clone()),
            ("version of headwater", run.version.clone()),
            (
                "length of a sample",
                format!("{} s", run.seconds_per_sample),
            ),
        ]
    };
    let pairs = of(old).into_iter().zip(of(new));
    let mut found: Vec<String> = pairs
        .filter(|(old, new)| old != new)
        .map(|((what, old), (_, new))| format!("the {what} differs: {old:?} before, {new:?} now"))
        .collect();
    if old.quick != new.quick {
        let (quick, full) = if old.quick {
            ("old", "new")
        } else {
            ("new", "old")
        };
        found.push(format!(
            "the {quick} run was a quick one and the {full} one was not: short samples and few rounds differ by themselves"
        ));
    }
    found
}

/// That the machine itself was faster or slower, in one sentence.
fn drift(old: &Calibration, new: &Calibration) -> Option<String> {
    let pairs = old.figures().into_iter().zip(new.figures());
    let moved = pairs.filter_map(|(old, new)| {
        let (before, now) = (old.value?, new.value?);
        let factor = (now / before).max(before / now);
        let (what, show) = (old.compared, old.show);
        (factor > old.usual).then(|| format!("{what} {} before, {} now", show(before), show(now)))
    });
    let moved: Vec<String> = moved.collect();
    (!moved.is_empty()).then(|| {
        format!(
            "the machine itself drifted ({}), so changes of that size need not be the software's",
            moved.join("; ")
        )
    })
}

/// What one run skipped and the other did not: the other's part, and why.
pub fn skipped_alone<'a>(run: &'a Run, other: &'a Run) -> impl Iterator<Item = &'a Skipped> {
    let too = |skipped: &Skipped| other.skipped.iter().any(|one| one.name == skipped.name);
    run.skipped.iter().filter(move |skipped| !too(skipped))
}

#[cfg(test)]
mod tests;

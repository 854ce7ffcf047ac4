//! Everything that a process has of the executive, held while it forks.

use super::{perimeter, registry, timer};

/// Every perimeter and table of the executive entered, so that a fork finds nothing half done. Dropped by parent and child.
pub struct Held {
    _perimeters: perimeter::AllHeld,
    _tables: (timer::Table, registry::Table),
}

/// Waits until nobody is inside any perimeter, and keeps everybody out. Called outside all of them.
pub fn hold_all() -> Held {
    Held {
        _perimeters: perimeter::hold(),
        _tables: (timer::hold(), registry::hold()),
    }
}

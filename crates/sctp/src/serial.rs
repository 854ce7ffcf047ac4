//! Serial numbers (RFC 1982): TSN, SSN and MID as types of their own, so that none is compared as a plain integer.
//!
//! `a.before(b)` is the `<` of RFC 1982. Two numbers exactly half the space apart have no order: neither is before the other.

macro_rules! serial {
    ($(#[$doc:meta])* $name:ident, $int:ty, $signed:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub struct $name(pub $int);

        impl $name {
            /// Strictly before `other` in serial-number order.
            #[inline]
            pub const fn before(self, other: Self) -> bool {
                let distance = other.0.wrapping_sub(self.0) as $signed;
                distance > 0
            }

            /// Before `other` or equal to it.
            #[inline]
            pub const fn at_most(self, other: Self) -> bool {
                self.0 == other.0 || self.before(other)
            }

            #[inline]
            pub const fn next(self) -> Self {
                Self(self.0.wrapping_add(1))
            }

            #[inline]
            pub const fn previous(self) -> Self {
                Self(self.0.wrapping_sub(1))
            }

            #[inline]
            pub const fn plus(self, n: $int) -> Self {
                Self(self.0.wrapping_add(n))
            }

            #[inline]
            pub const fn minus(self, n: $int) -> Self {
                Self(self.0.wrapping_sub(n))
            }

            /// How many steps after `earlier` this is, modulo the space.
            #[inline]
            pub const fn since(self, earlier: Self) -> $int {
                self.0.wrapping_sub(earlier.0)
            }
        }
    };
}

serial! {
    /// Transmission sequence number: one for each DATA or I-DATA chunk of a direction.
    Tsn, u32, i32
}
serial! {
    /// Stream sequence number: one for each ordered message of a stream (DATA).
    Ssn, u16, i16
}
serial! {
    /// Message identifier: as the SSN, for I-DATA (RFC 8260), of ordered and of unordered messages each.
    Mid, u32, i32
}

/// The number of a message in its stream, as DATA or, if `interleaved`, I-DATA has it; the other is 0.
#[inline]
pub fn numbers(number: u32, interleaved: bool) -> (Ssn, Mid) {
    match interleaved {
        true => (Ssn(0), Mid(number)),
        false => (Ssn(number as u16), Mid(0)),
    }
}

#[cfg(test)]
mod tests;

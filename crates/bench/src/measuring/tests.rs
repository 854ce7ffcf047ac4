use super::*;
use crate::experiment::TCP;

#[test]
fn wrong_bytes_are_remembered_whatever_becomes_of_the_round() {
    let mut series = Series::new(TCP);
    let died = |_: &Series| Err(Failure::Ended("it".to_string(), "died".to_string()));
    assert!(series.attempt(2, died).is_none());
    assert!(!series.wrong_contents);
    let wrong = |_: &Series| Err(Failure::Contents("it".to_string()));
    assert!(series.attempt(2, wrong).is_none());
    assert!(series.wrong_contents);
    assert!(series.attempt(2, |_| unreachable!()).is_none());
}

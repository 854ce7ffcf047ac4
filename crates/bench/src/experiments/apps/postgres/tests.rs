use super::*;

fn outcome(processed: &str, failed: &str) -> Outcome {
    Outcome {
        client_said: format!(
            "number of transactions actually processed: {processed}\nnumber of failed transactions: {failed} (0.1%)\n\
                 initial connection time = 19.791 ms\ntps = 22342.124960 (without initial connection time)\n"
        ),
        ..Outcome::default()
    }
}

#[test]
fn only_transactions_that_all_succeeded_have_a_rate() {
    assert_eq!(rate(&outcome("80/80", "0"), 80).unwrap(), 22342.12496);
    assert!(rate(&outcome("79/80", "0"), 80).is_err());
    assert!(rate(&outcome("80/80", "3"), 80).is_err());
}

use super::*;

#[test]
fn times_are_read_as_wrk_writes_them() {
    let said = "    Latency    59.80us   10.10us   1.20ms   96.50%\n  Latency Distribution\n     50%   12.50us\n     99%    1.25ms\n";
    assert_eq!(time_after(said, "50%"), Some(12_500.0));
    assert_eq!(time_after(said, "99%"), Some(1_250_000.0));
    assert_eq!(time_after(said, "90%"), None);
}

use super::*;

fn ack(control: &mut Rfc9260, acked: usize) {
    let window = control.window();
    control.on_ack(Time(0), acked, window, true, false);
}

#[test]
fn slow_start_doubles_and_avoidance_adds_a_packet_per_window() {
    let mut control = Rfc9260::new(1012);
    assert_eq!(control.window(), 4000);
    ack(&mut control, 4000);
    assert_eq!(control.window(), 8000);
    ack(&mut control, 8000);
    control.on_loss(16_000);
    assert_eq!((control.window(), control.threshold()), (8000, 8000));
    ack(&mut control, 1000);
    for _ in 0..8 {
        ack(&mut control, 1000);
    }
    assert_eq!(control.window(), 9000);
    ack(&mut control, 1000);
    assert_eq!(control.window(), 10_000);
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut control = Rfc9260::new(1012);
    control.on_ack(Time(0), 3000, 3000, true, false);
    control.on_ack(Time(0), 4000, 4000, false, false);
    control.on_ack(Time(0), 4000, 4000, true, true);
    assert_eq!(control.window(), 4000);
}

#[test]
fn a_timeout_leaves_one_packet_and_idleness_halves_down_to_four() {
    let mut control = Rfc9260::new(1012);
    for _ in 0..4 {
        let window = control.window();
        ack(&mut control, window);
    }
    assert_eq!(control.window(), 64_000);
    let rto = Duration::from_secs(1);
    control.on_idle(Time(0), Duration::from_millis(900), rto);
    assert_eq!(control.window(), 64_000);
    control.on_idle(Time(0), rto * 2, rto);
    assert_eq!((control.window(), control.threshold()), (16_000, 64_000));
    control.on_idle(Time(0), rto * 1000, rto);
    assert_eq!(control.window(), 4000);
    control.on_timeout();
    assert_eq!((control.window(), control.threshold()), (1000, 4000));
}

#[test]
fn the_first_window_follows_the_mtu() {
    let mut control = Rfc9260::new(1012);
    control.set_mtu(9012);
    assert_eq!(control.window(), 18_000);
    assert_eq!(Rfc9260::new(1452).window(), 4404);
}

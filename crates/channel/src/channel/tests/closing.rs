use super::*;

#[test]
fn what_was_sent_before_a_close_is_received_before_the_end() {
    let (a, b) = pair();
    a.send(b"last words").unwrap();
    drop(a);
    let mut buf = [0; 100];
    assert_eq!(b.recv(&mut buf), Ok(10));
    assert_eq!(b.recv(&mut buf), Err(ReceiveError::Closed));
    assert_eq!(b.try_recv(&mut buf), Err(ReceiveError::Closed));
    assert_eq!(b.peek().err(), Some(ReceiveError::Closed));
    assert_eq!(b.send(b"anybody?"), Err(SendError::Closed));
    assert_eq!(b.reserve(1).err(), Some(SendError::Closed));
}

#[test]
fn a_call_that_does_not_wait_learns_at_once_of_a_close() {
    let (a, b) = pair();
    assert_eq!(b.try_recv(&mut []), Err(ReceiveError::Empty));
    drop(a);
    assert_eq!(b.try_recv(&mut []), Err(ReceiveError::Closed));
    let (a, b) = pair();
    drop(b);
    assert_eq!(a.try_send(b"x"), Err(SendError::Closed));
}

#[test]
fn a_close_wakes_who_sleeps() {
    let (a, b) = pair();
    let reader = thread::spawn(move || b.recv(&mut [0; 8]));
    until(|| sleepers(&a, Work::Receiving) == 1);
    drop(a);
    assert_eq!(reader.join().unwrap(), Err(ReceiveError::Closed));

    let (a, b) = pair();
    send_until_full(&a, &[0; 100]);
    let writer = thread::spawn(move || a.send(&[0; 100]));
    until(|| sleepers(&b, Work::Sending) == 1);
    drop(b);
    assert_eq!(writer.join().unwrap(), Err(SendError::Closed));
}

#[test]
fn an_end_that_has_finished_sending_still_receives() {
    let (a, b) = pair();
    a.send(b"question").unwrap();
    a.finish_sending().unwrap();
    assert_eq!(a.send(b"more"), Err(SendError::Closed));
    let mut buf = [0; 100];
    assert_eq!(b.recv(&mut buf), Ok(8));
    assert_eq!(b.recv(&mut buf), Err(ReceiveError::Closed));
    b.send(b"answer").unwrap();
    assert_eq!(a.recv(&mut buf), Ok(6));
    drop(b);
    assert_eq!(a.recv(&mut buf), Err(ReceiveError::Closed));
}

#[test]
fn finishing_wakes_who_sleeps() {
    let (a, b) = pair();
    let reader = thread::spawn(move || b.recv(&mut [0; 8]));
    until(|| sleepers(&a, Work::Receiving) == 1);
    a.finish_sending().unwrap();
    assert_eq!(reader.join().unwrap(), Err(ReceiveError::Closed));
}

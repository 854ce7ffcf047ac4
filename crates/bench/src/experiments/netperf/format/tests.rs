use super::*;

/// The lines of figures, as the manual's examples have them.
fn last(text: &str, lines: usize) -> Vec<&str> {
    let all: Vec<&str> = text.lines().collect();
    all[all.len() - lines..].to_vec()
}

#[test]
fn a_stream_is_printed_as_in_the_manual() {
    let run = Run {
        size: 16384,
        elapsed: 10.0,
        sent: 6135,
        received: 6135,
        local: [16384, 87380],
        remote: [32768, 32768],
    };
    let text = run.stream("TCP");
    assert_eq!(
        text.lines().next(),
        Some(
            "TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 127.0.0.1 (127.0.0.1) port 0 AF_INET"
        )
    );
    assert_eq!(
        last(&text, 6),
        [
            "Recv   Send    Send",
            "Socket Socket  Message  Elapsed",
            "Size   Size    Size     Time     Throughput",
            "bytes  bytes   bytes    secs.    10^6bits/sec",
            "",
            " 32768  16384  16384    10.00      80.41"
        ]
    );
}

#[test]
fn datagrams_have_a_line_for_each_end() {
    let run = Run {
        size: 32768,
        elapsed: 10.0,
        sent: 105672,
        received: 104844,
        local: [124928, 124928],
        remote: [135168, 135168],
    };
    assert_eq!(
        last(&run.datagrams(), 6),
        [
            "Socket  Message  Elapsed      Messages",
            "Size    Size     Time         Okay Errors   Throughput",
            "bytes   bytes    secs            #      #   10^6bits/sec",
            "",
            "124928   32768   10.00      105672      0    2770.13",
            "135168           10.00      104844           2748.42"
        ]
    );
}

#[test]
fn transactions_name_the_buffers_of_both_ends() {
    let run = Run {
        size: 1,
        elapsed: 10.0,
        sent: 35388,
        received: 35388,
        local: [16384, 87380],
        remote: [32768, 32768],
    };
    let text = run.transactions();
    assert!(text.starts_with("TCP REQUEST/RESPONSE TEST from"));
    assert_eq!(
        last(&text, 4),
        [
            "bytes  Bytes  bytes    bytes   secs.    per sec",
            "",
            "16384  87380  1        1       10.00    3538.80",
            "32768  32768 "
        ]
    );
}

#[test]
fn a_sample_without_buffers_is_no_test_of_netperf() {
    assert_eq!(Run::of(&Sample::default(), 1), None);
}

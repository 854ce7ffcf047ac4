// A peer of pion/sctp over plain UDP datagrams (RFC 6951), for interoperation and comparison.
//
//	pion -listen 127.0.0.1:9900 -mode echo|discard
//	pion -local 127.0.0.1:9901 -to 127.0.0.1:9900 -mode source -count N -size N    sends for so many messages
//	pion -local 127.0.0.1:9901 -to 127.0.0.1:9900 -mode ping -count N -size N      and wants them back
//
// pion/sctp uses port 5000 on both sides. It prints "ready", and at the end what went through and its CPU time.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pion/logging"
	"github.com/pion/sctp"
)

var (
	listen   = flag.String("listen", "", "wait for a peer here")
	local    = flag.String("local", "127.0.0.1:0", "send from here")
	to       = flag.String("to", "", "connect to")
	mode     = flag.String("mode", "echo", "echo, discard, source or ping")
	count    = flag.Int("count", 100, "messages")
	size     = flag.Int("size", 64, "bytes of a message")
	streams  = flag.Int("streams", 1, "streams to spread them on")
	seconds  = flag.Float64("seconds", 0, "instead of a count")
	finish   = flag.Bool("shutdown", true, "end by SHUTDOWN, not by ABORT")
	received atomic.Int64
	gotBytes atomic.Int64
	sent     int64
)

// oneReader is a connection with one peer: who sent first, or last.
type oneReader struct {
	*net.UDPConn
	peer  atomic.Pointer[net.UDPAddr]
	first []byte
}

func (c *oneReader) Read(p []byte) (int, error) {
	if c.first != nil {
		n := copy(p, c.first)
		c.first = nil
		return n, nil
	}
	n, from, err := c.ReadFromUDP(p)
	if err == nil {
		c.peer.Store(from)
	}
	return n, err
}

func (c *oneReader) Write(p []byte) (int, error) { return c.WriteToUDP(p, c.peer.Load()) }

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	flag.Parse()
	association := begin()
	begun := time.Now()
	if *mode == "source" || *mode == "ping" {
		drive(association)
		if *finish {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			must(association.Shutdown(ctx))
		} else {
			association.Abort("enough")
		}
	} else {
		serve(association)
	}
	report(time.Since(begun))
}

func begin() *sctp.Association {
	config := sctp.Config{LoggerFactory: logging.NewDefaultLoggerFactory(), MaxReceiveBufferSize: 4 << 20, BlockWrite: true, MaxMessageSize: 1 << 20}
	if *to != "" {
		remote, err := net.ResolveUDPAddr("udp", *to)
		must(err)
		here, err := net.ResolveUDPAddr("udp", *local)
		must(err)
		conn, err := net.DialUDP("udp", here, remote)
		must(err)
		roomy(conn)
		config.NetConn = conn
		fmt.Println("ready")
		association, err := sctp.Client(config)
		must(err)
		return association
	}
	here, err := net.ResolveUDPAddr("udp", *listen)
	must(err)
	conn, err := net.ListenUDP("udp", here)
	must(err)
	roomy(conn)
	fmt.Println("ready")
	buffer := make([]byte, 1<<16)
	n, from, err := conn.ReadFromUDP(buffer)
	must(err)
	reader := &oneReader{UDPConn: conn, first: buffer[:n]}
	reader.peer.Store(from)
	config.NetConn = reader
	association, err := sctp.Server(config)
	must(err)
	return association
}

// roomy gives the socket room for a whole window, beyond the system's limit where that is permitted: what is lost there costs most.
func roomy(conn *net.UDPConn) {
	const bytes = 8 << 20
	must(conn.SetReadBuffer(bytes))
	raw, err := conn.SyscallConn()
	must(err)
	must(raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUFFORCE, bytes)
	}))
}

func serve(association *sctp.Association) {
	var group sync.WaitGroup
	for {
		stream, err := association.AcceptStream()
		if err != nil {
			break
		}
		group.Add(1)
		go func() {
			defer group.Done()
			take(stream, *mode == "echo")
		}()
	}
	group.Wait()
}

func take(stream *sctp.Stream, echo bool) {
	buffer := make([]byte, 1<<20)
	for {
		n, kind, err := stream.ReadSCTP(buffer)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				fmt.Fprintln(os.Stderr, err)
			}
			return
		}
		received.Add(1)
		gotBytes.Add(int64(n))
		if echo {
			_, err = stream.WriteSCTP(buffer[:n], kind)
			must(err)
		}
	}
}

func content(n, size int) []byte {
	bytes := make([]byte, size)
	for at := range bytes {
		bytes[at] = byte(n*31 + at*7 + at/251)
	}
	return bytes
}

func drive(association *sctp.Association) {
	open := make([]*sctp.Stream, *streams)
	for n := range open {
		stream, err := association.OpenStream(uint16(n), sctp.PayloadTypeWebRTCBinary)
		must(err)
		open[n] = stream
	}
	var group sync.WaitGroup
	if *mode == "ping" {
		for n := range open {
			group.Add(1)
			go func() {
				defer group.Done()
				buffer := make([]byte, 1<<20)
				for at := n; at < *count; at += *streams {
					got, err := open[n].Read(buffer)
					must(err)
					if !bytes.Equal(buffer[:got], content(at, *size)) {
						must(fmt.Errorf("message %d came back damaged", at))
					}
					received.Add(1)
					gotBytes.Add(int64(got))
				}
			}()
		}
	}
	end := time.Now().Add(time.Duration(*seconds * float64(time.Second)))
	same := content(0, *size)
	for n := 0; *seconds > 0 && time.Now().Before(end) || *seconds == 0 && n < *count; n++ {
		message := same
		if *mode == "ping" {
			message = content(n, *size)
		}
		_, err := open[n%*streams].Write(message)
		must(err)
		sent++
	}
	group.Wait()
}

func report(took time.Duration) {
	var usage syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	cpu := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	fmt.Printf("sent %d messages, received %d messages %d bytes, %.6f s, cpu %d ns\n",
		sent, received.Load(), gotBytes.Load(), took.Seconds(), cpu.Nanoseconds())
}

package faults

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// echo is a server that says back what it hears.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	return l.Addr().String()
}

// says is nil when text comes back whole within a time.
func says(c net.Conn, text string, within time.Duration) error {
	_ = c.SetDeadline(time.Now().Add(within))
	if _, err := c.Write([]byte(text)); err != nil {
		return err
	}
	back := make([]byte, len(text))
	if n, err := io.ReadFull(c, back); err != nil {
		return errors.Join(err, errors.New("came back: "+string(back[:n])))
	}
	if !bytes.Equal(back, []byte(text)) {
		return errors.New("came back: " + string(back))
	}
	return nil
}

// A link does what it is told to, and nothing once it has healed.
func TestProxy(t *testing.T) {
	t.Parallel()
	p, err := NewProxy(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	works := func(c net.Conn) {
		t.Helper()
		if err := says(c, "hello", time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	broken := func(c net.Conn) {
		t.Helper()
		if says(c, "hello", time.Second) == nil {
			t.Fatal("it works")
		}
	}
	c := dial()
	works(c)
	p.Blackhole()
	broken(c)
	p.Heal() // what was swallowed arrives now
	c = dial()
	works(c)
	p.HalfOpen()
	broken(c)
	works(dial())
	c = dial()
	works(c)
	p.Cut()
	broken(c)
	// A connection that is reset at once may be so before its dial returns.
	if c, err := net.Dial("tcp", p.Addr()); err == nil {
		t.Cleanup(func() { _ = c.Close() })
		broken(c)
	}
	p.Heal()
	c = dial()
	works(c)
	burnt := make(chan struct{})
	p.CutAfter(3, func() { close(burnt) })
	broken(c)
	<-burnt
	c = dial()
	works(c)
	p.FreezeAfter(2, func() {})
	broken(c)
	works(dial()) // only that connection is frozen
	p.Heal()
	p.Slow(50*time.Millisecond, 1<<20)
	c = dial()
	began := time.Now()
	if works(c); time.Since(began) < 100*time.Millisecond {
		t.Errorf("there and back took %s, twice 50 ms were asked for", time.Since(began))
	}
	p.Heal()
	p.Late(100 * time.Millisecond)
	c = dial()
	began = time.Now()
	if works(c); time.Since(began) < 100*time.Millisecond {
		t.Errorf("there and back took %s, an answer 100 ms late was asked for", time.Since(began))
	}
	p.Heal()
	p.Truncate(3)
	c = dial()
	_, _ = c.Write([]byte("hello"))
	if got, err := io.ReadAll(c); len(got) > 3 || err == nil && len(got) == 0 {
		t.Errorf("answered %q, %v, of which 3 bytes at most were to come", got, err)
	}
	p.Heal()
	p.Answer([]byte("no\n"))
	c = dial()
	got, err := io.ReadAll(c)
	if string(got) != "no\n" {
		t.Errorf("answered %q, %v", got, err)
	}
	p.Heal()
	await(t, startWait, func(context.Context) error { return says(dial(), "hello", time.Second) })
}

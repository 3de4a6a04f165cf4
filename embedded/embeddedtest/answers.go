package embeddedtest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Answer is a message on its way from a NATS server to a client.
type Answer struct {
	// Subject is where the message was published; of an answer, an inbox.
	Subject string
	// Reply begins with $JS.ACK. for a message that a consumer delivers.
	Reply string
	// Header and Data are the message's bytes.
	Header, Data []byte
}

// Fate is what becomes of an Answer.
type Fate struct {
	Drop bool
	// Delay holds it, and what follows it on the connection, for so long.
	Delay time.Duration
	// Instead is a header block that comes in its place, without a reply subject:
	// a status.
	Instead []byte
}

// AnswersProxy listens for clients of the NATS server at a URL, and asks fate, one
// message at a time, what becomes of each message from the server. It returns the
// URL to connect to. It ends with the test.
func AnswersProxy(t testing.TB, natsURL string, fate func(Answer) Fate) string {
	t.Helper()
	u, err := url.Parse(natsURL)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var (
		mu    sync.Mutex
		conns []net.Conn
		wg    sync.WaitGroup
		turn  sync.Mutex // of fate
		ended = make(chan struct{})
	)
	one := func(a Answer) Fate {
		turn.Lock()
		defer turn.Unlock()
		return fate(a)
	}
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", u.Host)
			if err != nil {
				_ = client.Close()
				continue
			}
			mu.Lock()
			conns = append(conns, client, server)
			mu.Unlock()
			wg.Go(func() { _, _ = io.Copy(server, client); _ = server.Close() })
			wg.Go(func() { passAnswers(bufio.NewReaderSize(server, 1<<20), client, one, ended); _ = client.Close() })
		}
	})
	t.Cleanup(func() {
		close(ended)
		_ = l.Close()
		mu.Lock()
		for _, c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	out := *u
	out.Host = l.Addr().String()
	return out.String()
}

// passAnswers passes the server's lines on, and each message as its fate says.
func passAnswers(from *bufio.Reader, to io.Writer, fate func(Answer) Fate, ended <-chan struct{}) {
	for {
		line, err := from.ReadBytes('\n')
		if err != nil {
			return
		}
		words := strings.Fields(string(line))
		if len(words) < 4 || words[0] != "MSG" && words[0] != "HMSG" {
			if _, err := to.Write(line); err != nil {
				return
			}
			continue
		}
		total, _ := strconv.Atoi(words[len(words)-1])
		body := make([]byte, total+2)
		if _, err := io.ReadFull(from, body); err != nil {
			return
		}
		a, head, plain := Answer{Subject: words[1]}, 0, 4
		if words[0] == "HMSG" {
			head, _ = strconv.Atoi(words[len(words)-2])
			plain = 5
		}
		if len(words) > plain {
			a.Reply = words[3]
		}
		a.Header, a.Data = bytes.Clone(body[:head]), bytes.Clone(body[head:total])
		f := fate(a)
		if f.Delay > 0 {
			timer := time.NewTimer(f.Delay)
			select {
			case <-timer.C:
			case <-ended:
				timer.Stop()
				return
			}
		}
		if f.Drop {
			continue
		}
		if f.Instead != nil {
			line = fmt.Appendf(nil, "HMSG %s %s %d %d\r\n", words[1], words[2], len(f.Instead), len(f.Instead))
			body = append(f.Instead, "\r\n"...)
		}
		if _, err := to.Write(append(line, body...)); err != nil {
			return
		}
	}
}

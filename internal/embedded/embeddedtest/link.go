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

// Request is a message on its way from a client to a NATS server.
type Request struct {
	// Subject is where it is published, Reply where an answer is awaited.
	Subject, Reply string
	// Header and Data are the message's bytes.
	Header, Data []byte
}

// Fate is what becomes of an Answer or a Request.
type Fate struct {
	Drop bool
	// Delay holds it, and what follows it on the connection, for so long.
	Delay time.Duration
	// Instead is a header block that comes in place of an answer, without a reply
	// subject: a status.
	Instead []byte
	// Data comes in place of the data of an answer, without its headers.
	Data []byte
}

// AnswersProxy listens for clients of the NATS server at a URL, and asks fate, one
// message at a time, what becomes of each message from the server. It returns the
// URL to connect to. It ends with the test.
func AnswersProxy(t testing.TB, natsURL string, fate func(Answer) Fate) string {
	t.Helper()
	return LinkProxy(t, natsURL, func(Request) Fate { return Fate{} }, fate)
}

// LinkProxy is AnswersProxy which also asks what becomes of each message to the
// server. It asks one question at a time.
func LinkProxy(t testing.TB, natsURL string, request func(Request) Fate, answer func(Answer) Fate) string {
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
		turn  sync.Mutex // of the questions
		ended = make(chan struct{})
	)
	requests := func(m wireMessage) Fate {
		turn.Lock()
		defer turn.Unlock()
		return request(Request{m.subject, m.reply, m.header, m.data})
	}
	answers := func(m wireMessage) Fate {
		turn.Lock()
		defer turn.Unlock()
		return answer(Answer{m.subject, m.reply, m.header, m.data})
	}
	pass := func(from, to net.Conn, fate func(wireMessage) Fate) {
		passMessages(bufio.NewReaderSize(from, 1<<20), to, fate, ended)
		_ = to.Close()
		_ = from.Close()
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
			wg.Go(func() { pass(client, server, requests) })
			wg.Go(func() { pass(server, client, answers) })
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

// wireMessage is a message of NATS's protocol, in either direction.
type wireMessage struct {
	subject, id, reply string // id: of the subscription, to a client alone
	header, data       []byte
}

// passMessages passes lines on, and each message as its fate says.
func passMessages(from *bufio.Reader, to io.Writer, fate func(wireMessage) Fate, ended <-chan struct{}) {
	for {
		line, err := from.ReadBytes('\n')
		if err != nil {
			return
		}
		m, head, total, ok := parseLine(line)
		if !ok {
			if _, err := to.Write(line); err != nil {
				return
			}
			continue
		}
		body := make([]byte, total+2)
		if _, err := io.ReadFull(from, body); err != nil {
			return
		}
		m.header, m.data = bytes.Clone(body[:head]), bytes.Clone(body[head:total])
		f := fate(m)
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
			line = fmt.Appendf(nil, "HMSG %s %s %d %d\r\n", m.subject, m.id, len(f.Instead), len(f.Instead))
			body = append(f.Instead, "\r\n"...)
		}
		if f.Data != nil {
			line = fmt.Appendf(nil, "MSG %s %s %d\r\n", m.subject, m.id, len(f.Data))
			body = append(f.Data, "\r\n"...)
		}
		if _, err := to.Write(append(line, body...)); err != nil {
			return
		}
	}
}

// parseLine reads the line before a message, with the sizes of its header block and
// of the whole.
func parseLine(line []byte) (m wireMessage, head, total int, ok bool) {
	words := strings.Fields(string(line))
	if len(words) < 3 {
		return m, 0, 0, false
	}
	sizes, at := 1, 2 // where the words after the subject begin
	switch words[0] {
	case "MSG":
		at = 3
	case "HMSG":
		at, sizes = 3, 2
	case "PUB":
	case "HPUB":
		sizes = 2
	default:
		return m, 0, 0, false
	}
	if len(words) < at+sizes {
		return m, 0, 0, false
	}
	m.subject = words[1]
	if at == 3 {
		m.id = words[2]
	}
	if len(words) > at+sizes {
		m.reply = words[at]
	}
	total, _ = strconv.Atoi(words[len(words)-1])
	if sizes == 2 {
		head, _ = strconv.Atoi(words[len(words)-2])
	}
	return m, head, total, true
}

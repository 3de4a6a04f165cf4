package streams

import (
	"bufio"
	"fmt"
	"net"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// hostile are header blocks as a client may send them, byte by byte.
var hostile = map[string]string{
	"a sequence that is none":         "NATS/1.0\r\nNats-Sequence: x\r\nNats-Subject: r.evil\r\nNats-Stream: OTHER\r\nNats-Num-Pending: 0\r\nNats-Time-Stamp: never\r\n\r\n",
	"the end of an answer":            "NATS/1.0 204 EOB\r\nNats-Num-Pending: 0\r\nNats-Last-Sequence: 0\r\n\r\n",
	"no messages":                     "NATS/1.0 404 No Messages\r\n\r\n",
	"a consumer that is gone":         "NATS/1.0\r\nStatus: 409\r\nDescription: Consumer Deleted\r\n\r\n",
	"an end that hides more":          "NATS/1.0 204 EOB\r\nNats-Num-Pending: 0\r\nNats-Last-Sequence: 0\r\n\r\nA: b\r\n\r\n",
	"a message that hides one":        "NATS/1.0\r\nNats-Stream: READS\r\nNats-Subject: r.evil\r\nNats-Sequence: 99999\r\nNats-Time-Stamp: 2026-11-22T00:00:00Z\r\nNats-Num-Pending: 0\r\nNats-Last-Sequence: 0\r\n\r\nA: b\r\n\r\n",
	"one that hides one of an answer": "NATS/1.0\r\nNats-Stream: READS\r\nNats-Subject: r.hostile\r\nNats-Sequence: 99999\r\nNats-Time-Stamp: 2026-11-22T00:00:00Z\r\n\r\n",
	"one under the server's names":    "NATS/1.0\r\nNats-Stream: READS\r\nNats-Subject: r.evil\r\nNats-Sequence: 99999\r\nNats-Time-Stamp: 2026-11-22T00:00:00Z\r\nNats-Num-Pending: 7\r\nNats-Last-Sequence: 8\r\n\r\n",
	"a name with a space":             "NATS/1.0\r\nfoo bar: x\r\n\r\n",
	"no line ends":                    "NATS/1.0\r\nfoo",
	"no colon":                        "NATS/1.0\r\nfoo\r\n\r\n",
	"many short lines":                "NATS/1.0\r\n" + strings.Repeat("a:\r\n", 300) + "\r\n",
	"not a header at all":             "\x00\x01\x02",
}

// TestNothingOfAClientIsTheServersWord holds the promise: messages
// with such headers among good ones change nothing that is read of the others, and
// are read themselves, under their own subject and sequence.
func TestNothingOfAClientIsTheServersWord(t *testing.T) {
	t.Parallel()
	srv, js := readsStream(t)
	ctx := timeout(t)
	sent := uint64(testMessages)
	for name, block := range hostile {
		publishRaw(t, srv.NATSURL, "r.hostile", block)
		sent++
		good := nats.NewMsg("r.0")
		good.Data = []byte("good after " + name)
		if ack, err := js.PublishMsg(ctx, good); err != nil || ack.Sequence != sent+1 {
			t.Fatalf("%s: %+v, %v; want sequence %d", name, ack, err, sent+1)
		}
		sent++
		check := func(how string, seqs []uint64, subjects []string, err error) {
			t.Helper()
			if err != nil || len(seqs) != int(sent) {
				t.Fatalf("%s: %s: %d of %d messages, %v", name, how, len(seqs), sent, err)
			}
			for i, seq := range seqs {
				if seq != uint64(i+1) || subjects[i] == "r.evil" {
					t.Fatalf("%s: %s: message %d came as %d on %s", name, how, i+1, seq, subjects[i])
				}
			}
		}
		var seqs []uint64
		var subjects []string
		take := func(m *Message) { seqs, subjects = append(seqs, m.Sequence), append(subjects, m.Subject) }
		err := Gather(ctx, js, testStream, "r.>", 1, nil, func(m *Message) (bool, error) { take(m); return true, nil })
		check("gather", seqs, subjects, err)
		seqs, subjects = nil, nil
		_, err = Headers(ctx, js, testStream, "r.>", 1, func(m *Message) error { take(m); return nil })
		check("headers", seqs, subjects, err)
		f, err := Follow(ctx, js, testStream, Range{Filter: "r.>"}, 64)
		if err != nil {
			t.Fatal(err)
		}
		seqs, subjects = nil, nil
		for len(seqs) < int(sent) && err == nil {
			var m *Message
			if m, err = f.Next(ctx); err == nil {
				take(m)
			}
		}
		f.Stop()
		check("follow", seqs, subjects, err)
		n := 0
		if err := Latest(ctx, js, testStream, "r.>", func(*Message) error { n++; return nil }); err != nil || n != testSubjects+1 {
			t.Fatalf("%s: latest: %d subjects, %v", name, n, err)
		}
		m, err := DecideLast(ctx, js, testStream, "r.hostile")
		if err != nil || m.Sequence != sent-1 {
			t.Fatalf("%s: decide: %+v, %v", name, m, err)
		}
		direct, err := DecideLastAlone(ctx, js, testStream, "r.hostile")
		if err != nil || direct.Sequence != m.Sequence || direct.Subject != m.Subject || !direct.Time.Equal(m.Time) || !reflect.DeepEqual(direct.Header, m.Header) && len(direct.Header)+len(m.Header) > 0 {
			t.Fatalf("%s: by a direct get: %+v, %v; the leader says %+v", name, direct, err, m)
		}
		again := nats.NewMsg("elsewhere")
		again.Header = CopyHeaders(m.Header)
		if err := js.Conn().PublishMsg(again); err != nil {
			t.Errorf("%s: its headers cannot be sent again: %v", name, err)
		}
	}
}

// publishRaw sends an empty message with a header block as it is.
func publishRaw(t *testing.T, natsURL, subject, block string) {
	t.Helper()
	u, err := url.Parse(natsURL)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	auth := ""
	if u.User != nil {
		if pass, ok := u.User.Password(); ok {
			auth = fmt.Sprintf(`,"user":%q,"pass":%q`, u.User.Username(), pass)
		} else {
			auth = fmt.Sprintf(`,"auth_token":%q`, u.User.Username())
		}
	}
	_, _ = fmt.Fprintf(c, "CONNECT {\"verbose\":false,\"headers\":true%s}\r\nHPUB %s %d %d\r\n%s\r\nPING\r\n", auth, subject, len(block), len(block), block)
	for in := bufio.NewScanner(c); in.Scan(); {
		if strings.HasPrefix(in.Text(), "PONG") {
			return
		}
		if strings.HasPrefix(in.Text(), "-ERR") {
			t.Fatal(in.Text())
		}
	}
	t.Fatal("the server closed the connection")
}

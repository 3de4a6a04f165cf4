package streams

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

const (
	testStream   = "READS"
	testSubjects = 40
	testMessages = 3000
)

// readsStream is a server with a stream of testMessages messages on testSubjects
// subjects, r.<n>.
func readsStream(t *testing.T) (*embeddedtest.Servers, jetstream.JetStream) {
	t.Helper()
	srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse())
	js, err := jetstream.New(srv.NC())
	if err != nil {
		t.Fatal(err)
	}
	ctx := timeout(t)
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: testStream, Subjects: []string{"r.>"}, AllowDirect: true, Storage: jetstream.FileStorage}); err != nil {
		t.Fatal(err)
	}
	for i := range testMessages {
		msg := nats.NewMsg(fmt.Sprintf("r.%d", i%testSubjects))
		msg.Header.Set("N", fmt.Sprint(i))
		msg.Data = fmt.Appendf(nil, "message %d", i)
		if _, err = js.PublishMsgAsync(msg); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-ctx.Done():
		t.Fatal("the messages were not stored")
	}
	return srv, js
}

// reads are the ways to read, each with its whole answer as text.
var reads = []struct {
	name string
	read func(ctx context.Context, js jetstream.JetStream) (string, error)
}{
	{"gather", func(ctx context.Context, js jetstream.JetStream) (string, error) {
		var b strings.Builder
		err := Gather(ctx, js, testStream, "r.>", 1, nil, func(m *Message) (bool, error) {
			fmt.Fprintf(&b, "%d %s %s %v %s\n", m.Sequence, m.Subject, m.Data, m.Header, m.Time.UTC())
			return true, nil
		})
		return b.String(), err
	}},
	{"headers", func(ctx context.Context, js jetstream.JetStream) (string, error) {
		var b strings.Builder
		unread, err := Headers(ctx, js, testStream, "r.>", 1, func(m *Message) error {
			fmt.Fprintf(&b, "%d %s %s %d\n", m.Sequence, m.Subject, m.Header["N"], m.Size)
			return nil
		})
		return fmt.Sprint(unread, "\n", b.String()), err
	}},
	{"last headers", func(ctx context.Context, js jetstream.JetStream) (string, error) {
		heads, unread, err := LastHeaders(ctx, js, testStream, "r.>")
		var b strings.Builder
		for _, m := range heads {
			fmt.Fprintf(&b, "%d %s %s\n", m.Sequence, m.Subject, m.Header["N"])
		}
		return fmt.Sprint(unread, "\n", b.String()), err
	}},
	{"latest", func(ctx context.Context, js jetstream.JetStream) (string, error) {
		var b strings.Builder
		err := Latest(ctx, js, testStream, "r.>", func(m *Message) error {
			fmt.Fprintf(&b, "%d %s %s\n", m.Sequence, m.Subject, m.Data)
			return nil
		})
		return b.String(), err
	}},
	{"latest after", func(ctx context.Context, js jetstream.JetStream) (string, error) {
		var b strings.Builder
		var subjects []string
		for n := range testSubjects {
			subjects = append(subjects, fmt.Sprintf("r.%d", n))
		}
		n := 0
		err := LatestAfter(ctx, js, testStream, append(subjects, "r.none"), testMessages-testSubjects/2, func(m *Message) error {
			n++
			fmt.Fprintf(&b, "%d %s %s\n", m.Sequence, m.Subject, m.Data)
			return nil
		})
		if err == nil && n != testSubjects/2 {
			err = fmt.Errorf("%d last messages, expected %d", n, testSubjects/2)
		}
		return b.String(), err
	}},
	{"decide", func(ctx context.Context, js jetstream.JetStream) (string, error) {
		var b strings.Builder
		for n := range testSubjects {
			m, err := DecideLast(ctx, js, testStream, fmt.Sprintf("r.%d", n))
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&b, "%d %s %s\n", m.Sequence, m.Subject, m.Data)
		}
		return b.String(), nil
	}},
	{"follow", func(ctx context.Context, js jetstream.JetStream) (string, error) {
		f, err := Follow(ctx, js, testStream, Range{Filter: "r.>"}, 64)
		if err != nil {
			return "", err
		}
		defer f.Stop()
		var b strings.Builder
		for range testMessages {
			m, err := f.Next(ctx)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&b, "%d %s %s\n", m.Sequence, m.Subject, m.Data)
		}
		return b.String(), nil
	}},
}

// unwhole are ways in which an answer is not whole or late. n counts the answers of
// a read from 0.
var unwhole = []struct {
	name string
	fate func(n int64) embeddedtest.Fate
}{
	{"each answer that begins is a second and a half late", func(n int64) embeddedtest.Fate {
		if n < 3 {
			return embeddedtest.Fate{Delay: 1500 * time.Millisecond}
		}
		return embeddedtest.Fate{}
	}},
	{"the first is lost", func(n int64) embeddedtest.Fate { return embeddedtest.Fate{Drop: n == 1} }},
	{"one in seven is lost", func(n int64) embeddedtest.Fate { return embeddedtest.Fate{Drop: n%7 == 3} }},
	{"one in the middle is lost", func(n int64) embeddedtest.Fate { return embeddedtest.Fate{Drop: n == 20} }},
	{"it is cut short", func(n int64) embeddedtest.Fate { return embeddedtest.Fate{Drop: n >= 25} }},
	{"nothing comes", func(int64) embeddedtest.Fate { return embeddedtest.Fate{Drop: true} }},
}

// TestReadIsCompleteOrAnError holds the promise: whatever a link
// delays, loses or cuts short, a read gives the whole truth, or ErrCut with what to
// do next.
func TestReadIsCompleteOrAnError(t *testing.T) {
	t.Parallel()
	srv, direct := readsStream(t)
	var wg sync.WaitGroup // most of them wait for a silent server: side by side
	defer wg.Wait()
	for _, r := range reads {
		want, err := r.read(timeout(t), direct)
		if err != nil || len(want) < testSubjects {
			t.Fatalf("%s: %d bytes, %v", r.name, len(want), err)
		}
		for _, u := range unwhole {
			var n, on atomic.Int64
			link := embeddedtest.AnswersProxy(t, srv.NATSURL, func(embeddedtest.Answer) embeddedtest.Fate {
				if on.Load() == 0 {
					return embeddedtest.Fate{}
				}
				return u.fate(n.Add(1) - 1)
			})
			_, js := embeddedtest.Dial(t, link, nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
			on.Store(1)
			wg.Go(func() {
				got, err := r.read(timeout(t), js)
				switch {
				case err == nil && got != want:
					t.Errorf("%s, %s: %d bytes were taken for the whole %d", r.name, u.name, len(got), len(want))
				case err != nil && !errors.Is(err, ErrCut):
					t.Errorf("%s, %s: it ended with %v, which does not say that the answer was not whole", r.name, u.name, err)
				case err != nil && !strings.Contains(err.Error(), "run this again"):
					t.Errorf("%s, %s: %v does not say what to do", r.name, u.name, err)
				}
			})
		}
	}
}

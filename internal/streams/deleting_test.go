package streams

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// While the streams are copied a removal does what its caller decided, and without a copy it removes.
func TestRemovalsWhileStreamsAreCopied(t *testing.T) {
	t.Parallel()
	_, js := readsStream(t)
	ctx := timeout(t)
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: schemas.KVStream, Subjects: []string{schemas.KVSubject(">")}, MaxMsgsPerSubject: 1, AllowDirect: true, AllowMsgTTL: true, Storage: jetstream.FileStorage,
	}); err != nil {
		t.Fatal(err)
	}
	s, err := Open(ctx, js, testStream)
	if err != nil {
		t.Fatal(err)
	}
	removals := map[string]func(string, uint64, WhileCopied) error{
		"a message":             func(_ string, seq uint64, w WhileCopied) error { return Delete(ctx, js, s, seq, false, w) },
		"a message, with bytes": func(_ string, seq uint64, w WhileCopied) error { return Delete(ctx, js, s, seq, true, w) },
		"a subject":             func(subject string, _ uint64, w WhileCopied) error { return Purge(ctx, js, testStream, subject, w) },
		"up to a message": func(subject string, seq uint64, w WhileCopied) error {
			return PurgeWith(ctx, js, s, subject, w, jetstream.WithPurgeSequence(seq+1))
		},
	}
	n := 0
	for what, remove := range removals {
		for _, c := range []struct {
			name    string
			while   WhileCopied
			copying bool
			want    error // of the removal, which then leaves the message
			lost    bool  // the copy is told
		}{
			{"refused", Refuse, true, ErrCopying, false},
			{"told", Tell, true, nil, true},
			{"unneeded", Unneeded, true, nil, false},
			{"refused, no copy", Refuse, false, nil, false},
			{"told, no copy", Tell, false, nil, false},
		} {
			t.Run(what+" "+c.name, func(t *testing.T) { // one after the other: a copy is one of all streams of the server
				n++
				subject := fmt.Sprintf("r.removed.%d", n)
				ack, err := js.Publish(ctx, subject, nil)
				if err != nil {
					t.Fatal(err)
				}
				held, copying := context.Context(nil), (*Copying)(nil)
				if c.copying {
					if held, copying, err = BeginCopying(ctx, js); err != nil {
						t.Fatal(err)
					}
					defer copying.End(ctx)
				}
				if err := remove(subject, ack.Sequence, c.while); !errors.Is(err, c.want) {
					t.Fatalf("%v, want %v", err, c.want)
				}
				if _, err := DecideAt(ctx, js, testStream, ack.Sequence); (err == nil) != (c.want != nil) || err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
					t.Errorf("the message: %v", err)
				}
				if !c.copying {
					return
				}
				if err := copying.Still(ctx); errors.Is(err, ErrPurged) != c.lost || !c.lost && err != nil {
					t.Errorf("the copy: %v", err)
				}
				if c.lost && !errors.Is(context.Cause(held), ErrPurged) {
					t.Errorf("the copy goes on: %v", context.Cause(held))
				}
			})
		}
	}
}

// removing are the calls of nats.go that take messages out of a stream.
var removing = regexp.MustCompile(`\.(DeleteMsg|SecureDeleteMsg|DeleteStream)\(|\.Purge\(ctx(, (opts|jetstream\.)[^)]*)?\)|jetstream\.WithPurgeKeep`)

// Messages leave streams by this package alone, so that each removal decides what it does while streams are copied.
func TestRemovalsDecide(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	mayAlso := map[string]string{
		"bench/": "a program beside Almanac, on streams of its own",
	}
	for _, found := range []string{"s.DeleteMsg(ctx, 1)", "s.SecureDeleteMsg(ctx, 1)", "s.Purge(ctx)", "s.Purge(ctx, jetstream.WithPurgeSubject(x))", "js.DeleteStream(ctx, n)"} {
		if !removing.MatchString(found) {
			t.Errorf("%s is not seen", found)
		}
	}
	here := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || path != root && strings.HasPrefix(d.Name(), ".") && d.Name() != "..") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			if !removing.MatchString(line) {
				continue
			}
			if strings.HasPrefix(name, "internal/streams/") {
				here++
				continue
			}
			allowed := false
			for prefix := range mayAlso {
				allowed = allowed || strings.HasPrefix(name, prefix)
			}
			if !allowed {
				t.Errorf("%s:%d takes messages out of a stream by itself: use streams.Delete or streams.PurgeWith, and decide what it does while streams are copied", name, i+1)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if here == 0 {
		t.Error("this package's own removals are not seen: the test looks elsewhere")
	}
}

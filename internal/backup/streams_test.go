package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

// maxWait is how long anything may take on a busy machine.
const maxWait = 2 * time.Minute

// served is a NATS with a stream, and a store for copies.
func served(t *testing.T, config jetstream.StreamConfig) (Config, jetstream.JetStream) {
	t.Helper()
	srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse())
	js, err := jetstream.New(srv.NC())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	store, err := OpenStore(t.Context(), Directory(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close(context.WithoutCancel(t.Context())) })
	return Config{NC: srv.NC(), Store: store}, js
}

// copied copies a stream and calls f with its messages.
func copied(t *testing.T, c Config, js jetstream.JetStream, name string, to extent, f func(*message)) Stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	var m Manifest
	if err := c.stream(ctx, js, &m, nil, name, to); err != nil {
		t.Fatal(err)
	}
	s := m.Streams[0]
	if err := c.Store.messages(t.Context(), &s, func(m *message) error { f(m); return nil }); err != nil {
		t.Fatal(err)
	}
	return s
}

// A copy of keys that are written over meanwhile lacks none of them, and does not have one older than when it began.
func TestKeysAreCopiedUnderWrites(t *testing.T) {
	t.Parallel()
	const keys = 3000
	c, js := served(t, jetstream.StreamConfig{Name: "KEYS", Subjects: []string{"k.*"}, MaxMsgsPerSubject: 1, AllowDirect: true, Storage: jetstream.FileStorage})
	var version [keys]atomic.Int64
	put := func(key int, v int64) {
		if _, err := js.Publish(t.Context(), fmt.Sprint("k.", key), fmt.Append(nil, v)); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
		version[key].Store(v)
	}
	embeddedtest.Each(16, keys, func(key int) { put(key, 1) })
	running, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(w)))
			for v := int64(2); running.Err() == nil; v++ {
				put(4*r.IntN(keys/4)+w, v) // a key has one writer
			}
		})
	}
	for range 3 {
		var before [keys]int64
		for key := range before {
			before[key] = version[key].Load()
		}
		var got [keys]int64
		copied(t, c, js, "KEYS", keyed(), func(m *message) {
			var key int
			var v int64
			if _, err := fmt.Sscanf(m.subject+" "+string(m.data), "k.%d %d", &key, &v); err != nil {
				t.Fatal(err)
			}
			got[key] = v
		})
		missing, older := 0, 0
		for key := range got {
			switch {
			case got[key] == 0:
				missing++
			case got[key] < before[key]:
				older++
			}
		}
		if missing+older > 0 {
			t.Errorf("%d keys are missing and %d are as they were before the copy began", missing, older)
		}
	}
	stop()
	wg.Wait()
}

// A stream that is restored has the same messages under the same sequences and times, and gives the same sequence next.
func TestStreamIsRestored(t *testing.T) {
	t.Parallel()
	config := schemas.ShardsStream(schemas.StreamLimits{ShardsBytes: 64 << 20, Replicas: 1})
	c, js := served(t, config)
	subject := schemas.ShardSubject("app", schemas.Month(202611), 1)
	for n := range 20 {
		msg := nats.NewMsg(subject)
		msg.Header.Set("A", fmt.Sprint(n))
		msg.Data = bytes.Repeat([]byte{byte(n)}, n*1000)
		if _, err := js.PublishMsg(t.Context(), msg); err != nil {
			t.Fatal(err)
		}
	}
	stream, err := js.Stream(t.Context(), config.Name)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context(), jetstream.WithPurgeSequence(4)); err != nil {
		t.Fatal(err)
	}
	for _, seq := range []uint64{7, 20} {
		if err := stream.DeleteMsg(t.Context(), seq); err != nil {
			t.Fatal(err)
		}
	}
	var all []*message
	s := copied(t, c, js, config.Name, keyed(), func(m *message) { all = append(all, m) })
	if s.First != 4 || s.Last != 20 || len(all) != 15 {
		t.Fatalf("it has %d messages from %d to %d", len(all), s.First, s.Last)
	}
	target := embeddedtest.Start(t, embeddedtest.WithoutClickHouse())
	there, err := jetstream.New(target.NC())
	if err != nil {
		t.Fatal(err)
	}
	restore := RestoreConfig{NC: target.NC(), Store: c.Store, Limits: schemas.StreamLimits{ShardsBytes: 32 << 20, Replicas: 1}}
	if err := restore.stream(t.Context(), there, &s, &selection{}, "a.backup"); err != nil {
		t.Fatal(err)
	}
	info, err := streams.Info(t.Context(), there, config.Name)
	if err != nil || info.State.FirstSeq != 4 || info.State.LastSeq != 20 || info.State.Msgs != 15 || info.Config.MaxBytes != 32<<20 || !info.Config.AllowAtomicPublish {
		t.Fatalf("%+v, %v", info, err)
	}
	for _, m := range all {
		got, err := streams.DecideAt(t.Context(), there, config.Name, m.seq)
		if err != nil || got.Subject != m.subject || got.Time.UnixNano() != m.stored || !bytes.Equal(got.Data, m.data) || got.Header.Get("A") == "" {
			t.Errorf("message %d: %+v, %v", m.seq, got, err)
		}
	}
	if ack, err := there.Publish(t.Context(), subject, nil); err != nil || ack.Sequence != 21 {
		t.Errorf("the next is %+v, %v", ack, err)
	}
	if err := restore.stream(t.Context(), there, &s, &selection{}, "a.backup"); err == nil {
		t.Error("a stream with a message of its own was taken for that of the backup")
	}
}

// A log is cut at a time, before an atomic batch that had not ended then.
func TestLogIsCutBeforeABatch(t *testing.T) {
	t.Parallel()
	config := schemas.ShardsStream(schemas.StreamLimits{ShardsBytes: 64 << 20, Replicas: 1})
	c, js := served(t, config)
	batch := make([]*nats.Msg, 5)
	for n := range batch {
		batch[n] = nats.NewMsg(schemas.ShardSubject("app", schemas.Month(202611), schemas.Shard(n)))
	}
	batch[4] = nats.NewMsg(schemas.RoutedSubject("app", "0"))
	for range 2 {
		if _, err := streams.Commit(t.Context(), js, batch...); err != nil {
			t.Fatal(err)
		}
	}
	within, err := streams.DecideAt(t.Context(), js, config.Name, 8)
	if err != nil {
		t.Fatal(err)
	}
	last, err := streams.DecideAt(t.Context(), js, config.Name, 10)
	if err != nil {
		t.Fatal(err)
	}
	for until, want := range map[time.Time]uint64{within.Time: 5, last.Time: 10} {
		if until.Equal(last.Time) && until.Equal(within.Time) {
			continue
		}
		var got []uint64
		s := copied(t, c, js, config.Name, upTo(until), func(m *message) { got = append(got, m.seq) })
		if s.Last != want || uint64(len(got)) != want {
			t.Errorf("as of %s it has %v and ends at %d, want %d", until, got, s.Last, want)
		}
	}
	// Its checkpoint goes, and a newer one is above the point.
	if _, err := streams.Commit(t.Context(), js, batch...); err != nil {
		t.Fatal(err)
	}
	stream, err := streams.Open(t.Context(), js, config.Name)
	if err != nil {
		t.Fatal(err)
	}
	if err := streams.PurgeWith(t.Context(), js, stream, batch[4].Subject, streams.Refuse, jetstream.WithPurgeSequence(15)); err != nil {
		t.Fatal(err)
	}
	if err := c.stream(t.Context(), js, &Manifest{}, nil, config.Name, upTo(last.Time)); !errors.Is(err, errNoCheckpoint) {
		t.Errorf("a copy without the checkpoint of a lane: %v", err)
	}
	var cfg jetstream.StreamConfig
	if err := json.Unmarshal(copied(t, c, js, config.Name, keyed(), func(*message) {}).Config, &cfg); err != nil || cfg.Name != config.Name {
		t.Errorf("%+v, %v", cfg, err)
	}
}

package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// written is what the bucket, or the bucket of copies, has under a key.
type written struct {
	count uint64 // see schemas.HeaderCount; 0: written by hand
	seq   uint64 // 0: nothing
	data  []byte // empty: deleted
}

func (w *written) live() bool { return len(w.data) > 0 }

func writtenBy(m *streams.Message) written {
	n, _ := strconv.ParseUint(m.Header.Get(schemas.HeaderCount), 10, 64)
	return written{count: n, seq: m.Sequence, data: m.Data}
}

// step is what makes an entry and its copy equal.
type step int

const (
	agree  step = iota
	copyUp      // the entry is newer, or has no copy
	putBack
)

// compare decides which of an entry and its copy is newer. The copy is written after the entry.
// So a copy that was written more often, and was read before the entry, proves that the bucket
// lost the entry or is an older one.
func compare(entry, copied written) step {
	switch {
	case copied.count > entry.count && (copied.live() || entry.live()):
		return putBack
	case copied.count > entry.count: // forgotten in both
		return agree
	case entry.live() && (entry.count > copied.count || !bytes.Equal(entry.data, copied.data)):
		return copyUp
	}
	return agree
}

// lastOf reads what a stream has under a key.
func (r *Registry) lastOf(ctx context.Context, stream, subject string) (written, error) {
	m, err := streams.DecideLast(ctx, r.js, stream, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return written{}, nil
	}
	if err != nil {
		return written{}, err
	}
	return writtenBy(m), nil
}

// lastsOf reads what a stream has under some keys.
func (r *Registry) lastsOf(ctx context.Context, stream string, subject func(string) string, keys []string) (map[string]written, error) {
	out := map[string]written{}
	if len(keys) == 1 {
		w, err := r.lastOf(ctx, stream, subject(keys[0]))
		out[keys[0]] = w
		return out, err
	}
	subjects := make([]string, len(keys))
	for i, k := range keys {
		subjects[i] = subject(k)
	}
	prefix := len(subject(""))
	err := streams.LatestOf(ctx, r.js, stream, subjects, func(m *streams.Message) error {
		out[m.Subject[prefix:]] = writtenBy(m)
		return nil
	})
	return out, err
}

// allOf reads all entries of a stream that match a filter of keys and have a copy.
func (r *Registry) allOf(ctx context.Context, stream string, subject func(string) string, filter string) (map[string]written, error) {
	out := map[string]written{}
	prefix := len(subject(""))
	err := streams.Latest(ctx, r.js, stream, subject(filter), func(m *streams.Message) error {
		if key := m.Subject[prefix:]; schemas.Copied(key) {
			out[key] = writtenBy(m)
		}
		return nil
	})
	return out, err
}

// number gives each change the count that its entry gets. Where a copy proves that the bucket
// went back it puts the newer entry back, and the answer is ErrConflict: read again.
func (r *Registry) number(ctx context.Context, changes []*change) error {
	var keys []string
	for _, c := range changes {
		if schemas.Copied(c.key) {
			keys = append(keys, c.key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	copies, err := r.copiesOf(ctx, keys) // first: the bucket is never behind them
	if err != nil {
		return err
	}
	entries, err := r.lastsOf(ctx, schemas.KVStream, schemas.KVSubject, keys)
	if err != nil {
		return fmt.Errorf("registry: reading %s: %w", keys[0], err)
	}
	var conflict error
	for _, c := range changes {
		if !schemas.Copied(c.key) {
			continue
		}
		entry, copied := entries[c.key], copies[c.key]
		switch {
		case compare(entry, copied) == putBack:
			if err := r.putBack(ctx, c.key, entry, copied); err != nil {
				return err
			}
			conflict = fmt.Errorf("%w: %s", ErrConflict, c.key)
		case !c.any && entry.seq != c.rev:
			conflict = fmt.Errorf("%w: %s", ErrConflict, c.key)
		}
		c.count, c.copied = max(entry.count, copied.count)+1, copied.seq
	}
	return conflict
}

// copiesOf reads the copies of some keys. A lost bucket of copies is made and filled first.
func (r *Registry) copiesOf(ctx context.Context, keys []string) (map[string]written, error) {
	copies, err := r.lastsOf(ctx, schemas.CopiesStream, schemas.CopySubject, keys)
	if lostStream(err) {
		if _, err = r.Reconcile(ctx); err == nil {
			copies, err = r.lastsOf(ctx, schemas.CopiesStream, schemas.CopySubject, keys)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("registry: reading the copy of %s: %w", keys[0], err)
	}
	return copies, nil
}

func lostStream(err error) bool {
	return errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrBucketNotFound)
}

// copyChanges writes the copies of changes that were committed. No part may rely on a change
// before: a lost bucket would take it away.
func (r *Registry) copyChanges(ctx context.Context, changes []*change, msgs []*nats.Msg) error {
	var copies []*nats.Msg
	for i, c := range changes {
		if schemas.Copied(c.key) {
			copies = append(copies, copyMsg(c.key, written{count: c.count, data: msgs[i].Data}, c.copied))
		}
	}
	if len(copies) > 1 {
		_, err := streams.Once(ctx, func(ctx context.Context) (uint64, error) { return streams.Commit(ctx, r.js, copies...) })
		if err == nil {
			return nil
		}
		if !streams.LostRace(err) {
			return notCopied(changes[0].key, err)
		}
	}
	for i, c := range changes {
		if !schemas.Copied(c.key) {
			continue
		}
		if err := r.copyOne(ctx, c.key, written{count: c.count, data: msgs[i].Data}, c.copied); err != nil {
			return err
		}
	}
	return nil
}

func notCopied(key string, err error) error {
	return fmt.Errorf("registry: %s is written, and its second copy is not yet: %w; the next change of it, or the next round of a sink, writes the copy", key, err)
}

func copyMsg(key string, w written, over uint64) *nats.Msg {
	m := nats.NewMsg(schemas.CopySubject(key))
	m.Data = w.data
	m.Header.Set(schemas.HeaderCount, strconv.FormatUint(w.count, 10))
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(over, 10))
	return m
}

// copyOne writes one copy over the message that was read, unless one that was written as often
// is there by then. No data is a tombstone: the entry was forgotten, which is not the same as
// that it has no copy.
func (r *Registry) copyOne(ctx context.Context, key string, w written, over uint64) error {
	for {
		_, err := streams.Once(ctx, func(ctx context.Context) (*jetstream.PubAck, error) {
			return r.js.PublishMsg(ctx, copyMsg(key, w, over))
		})
		if err == nil {
			return nil
		}
		if !streams.LostRace(err) {
			return notCopied(key, err)
		}
		now, err := r.lastOf(ctx, schemas.CopiesStream, schemas.CopySubject(key))
		if err != nil || now.count >= w.count {
			return err
		}
		over = now.seq
	}
}

// putBack writes what a copy has over what the bucket has. A conflict is another process that
// did the same.
func (r *Registry) putBack(ctx context.Context, key string, entry, copied written) error {
	if !copied.live() {
		return r.forget(ctx, key)
	}
	m := nats.NewMsg(schemas.KVSubject(key))
	m.Data = copied.data
	m.Header.Set(schemas.HeaderCount, strconv.FormatUint(copied.count, 10))
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(entry.seq, 10))
	_, err := streams.Once(ctx, func(ctx context.Context) (*jetstream.PubAck, error) { return r.js.PublishMsg(ctx, m) })
	if err != nil && !streams.LostRace(err) {
		return fmt.Errorf("registry: putting %s back: %w", key, err)
	}
	return nil
}

// bring puts back what the bucket lacks of one key, or has older than its copy. back reports whether
// the bucket has the entry, so that a caller that did not find it reads again.
func (r *Registry) bring(ctx context.Context, key string) (back bool, err error) {
	copied, err := r.lastOf(ctx, schemas.CopiesStream, schemas.CopySubject(key))
	if lostStream(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("registry: reading the copy of %s: %w", key, err)
	}
	if copied.count == 0 {
		return false, nil
	}
	entry, err := r.lastOf(ctx, schemas.KVStream, schemas.KVSubject(key))
	if err != nil {
		return false, fmt.Errorf("registry: reading %s: %w", key, err)
	}
	if compare(entry, copied) != putBack {
		return entry.live(), nil // another process was faster
	}
	return true, r.putBack(ctx, key, entry, copied)
}

// Reconcile makes the bucket and its copies equal, entry by entry, the newer of both over the
// other, and makes a bucket of copies that is lost. back is how many entries it restored. It
// reads all entries, and may run any number of times, from any number of processes.
func (r *Registry) Reconcile(ctx context.Context) (back int, err error) {
	copies, err := r.allOf(ctx, schemas.CopiesStream, schemas.CopySubject, ">") // first: see number
	if lostStream(err) {
		if err = r.makeCopies(ctx); err == nil {
			copies, err = r.allOf(ctx, schemas.CopiesStream, schemas.CopySubject, ">")
		}
	}
	if err != nil {
		return 0, fmt.Errorf("registry: reading the copies: %w", err)
	}
	entries, err := r.allOf(ctx, schemas.KVStream, schemas.KVSubject, ">")
	if err != nil {
		return 0, fmt.Errorf("registry: reading all entries: %w", err)
	}
	keys := maps.Clone(entries)
	maps.Copy(keys, copies)
	for _, key := range inOrder(keys) {
		entry, copied := entries[key], copies[key]
		switch compare(entry, copied) {
		case putBack:
			back++
			err = r.putBack(ctx, key, entry, copied)
		case copyUp:
			err = r.copyOne(ctx, key, written{count: max(entry.count, copied.count, 1), data: entry.data}, copied.seq)
		case agree:
		}
		if err != nil {
			return back, err
		}
	}
	return back, nil
}

// inOrder sorts keys so that nothing is restored before its ledger is, and a topic comes last:
// routers and sinks begin as soon as they know it.
func inOrder[V any](keys map[string]V) []string {
	rank := func(key string) int {
		if _, in := schemas.InLedger(key); in {
			return 0
		}
		if schemas.IsTopicKey(key) {
			return 2
		}
		return 1
	}
	out := slices.Collect(maps.Keys(keys))
	slices.SortFunc(out, func(a, b string) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return bytes.Compare([]byte(a), []byte(b))
	})
	return out
}

// makeCopies makes the bucket of copies with the bounds of the bucket.
func (r *Registry) makeCopies(ctx context.Context) error {
	s, err := streams.Open(ctx, r.js, schemas.KVStream)
	if err != nil {
		return fmt.Errorf("registry: bucket %q: %w", schemas.Bucket, err)
	}
	cfg := s.CachedInfo().Config
	return createBucket(ctx, r.js, schemas.CopiesBucket(schemas.StreamLimits{RegistryBytes: cfg.MaxBytes, Replicas: cfg.Replicas}))
}

// createBucket makes a bucket where it is missing, so that it takes atomic batches and what expires.
func createBucket(ctx context.Context, js jetstream.JetStream, cfg jetstream.KeyValueConfig) error {
	stream := "KV_" + cfg.Bucket
	s, err := streams.Open(ctx, js, stream)
	if err == nil {
		if err := streams.CheckReplicas(s.CachedInfo().Config, jetstream.StreamConfig{Replicas: cfg.Replicas}); err != nil {
			return fmt.Errorf("registry: %w", err)
		}
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		create := func(ctx context.Context) (jetstream.KeyValue, error) { return js.CreateKeyValue(ctx, cfg) }
		if _, err := streams.Asked(ctx, js.Conn(), create); err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
			return streams.TooSmall(fmt.Sprintf("bucket %q", cfg.Bucket), cfg.MaxBytes, fmt.Errorf("registry: creating bucket %q: %w", cfg.Bucket, err))
		}
	}
	return streams.PrepareBucket(ctx, js, stream)
}

// hasCopies reports whether the bucket of copies knows a topic.
func hasCopies(ctx context.Context, js jetstream.JetStream) (bool, error) {
	r := &Registry{js: js}
	all, err := r.allOf(ctx, schemas.CopiesStream, schemas.CopySubject, schemas.TopicKeys)
	if lostStream(err) {
		return false, nil
	}
	for _, w := range all {
		if w.live() {
			return true, err
		}
	}
	return false, err
}

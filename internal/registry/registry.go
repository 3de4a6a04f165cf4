package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// Registry is a view of the bucket. It is safe for concurrent use and holds no
// state but the connection.
type Registry struct {
	js jetstream.JetStream
	kv jetstream.KeyValue

	odd   func(error) // of Skipping
	third Third       // of WithThird
}

// Skipping is the registry for a part that examines all of it: its lists leave out entries
// that are not readable, and tell odd of each. What reads or writes a single entry is as
// before.
func (r *Registry) Skipping(odd func(error)) *Registry {
	skipping := *r
	skipping.odd = odd
	return &skipping
}

// Open binds to an existing registry.
func Open(ctx context.Context, nc *nats.Conn) (*Registry, error) { return openBy(ctx, nc, opens) }

func openBy(ctx context.Context, nc *nats.Conn, by caller) (*Registry, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	if err := checkServer(ctx, js, by); err != nil {
		return nil, err
	}
	kv, err := streams.Bucket(ctx, js)
	if err != nil {
		if errors.Is(err, jetstream.ErrBucketNotFound) {
			if lost, err := Lost(ctx, js, ""); err == nil && lost {
				return nil, fmt.Errorf("%w: %w: %s has no bucket %q, and %s holds frames; run `almanac repair`, which rebuilds it", ErrNoRegistry, ErrLost, nc.ConnectedUrlRedacted(), schemas.Bucket, schemas.StreamShards)
			}
			return nil, fmt.Errorf("%w: %s has no bucket %q; start `almanac up` or `almanac router` against it once", ErrNoRegistry, nc.ConnectedUrlRedacted(), schemas.Bucket)
		}
		return nil, fmt.Errorf("registry: bucket %q on %s: %w", schemas.Bucket, nc.ConnectedUrlRedacted(), err)
	}
	return &Registry{js: js, kv: kv}, nil
}

// JetStream is the connection the registry stands on.
func (r *Registry) JetStream() jetstream.JetStream { return r.js }

// Setup creates the streams and the bucket where they are missing, checks those
// that exist, and opens the registry. It may run any number of times, from any
// number of processes.
func Setup(ctx context.Context, nc *nats.Conn, limits schemas.StreamLimits) (*Registry, error) {
	return setup(ctx, nc, limits, makes)
}

func setup(ctx context.Context, nc *nats.Conn, limits schemas.StreamLimits, by caller) (*Registry, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	if err := checkServer(ctx, js, by); err != nil {
		return nil, err
	}
	for _, cfg := range schemas.Streams(limits) {
		if err := streams.Ensure(ctx, js, cfg, limits.Said.Of(cfg.Name)); err != nil {
			return nil, err
		}
	}
	if err := createBucket(ctx, js, schemas.CopiesBucket(limits)); err != nil {
		return nil, err
	}
	if err := checkLost(ctx, js); err != nil {
		return nil, err
	}
	return makeBuckets(ctx, nc, limits, by)
}

// get reads one entry into v and returns its revision. A key that was deleted is
// ErrNotFound and has a revision too, which the next write must expect. What the bucket lacks
// and a copy has is restored first; so is an entry of the ledger that a copy has newer.
func (r *Registry) get(ctx context.Context, key string, v any) (uint64, error) {
	if _, in := schemas.InLedger(key); in {
		if _, err := r.bring(ctx, key); err != nil {
			return 0, err
		}
		return r.getHere(ctx, key, v)
	}
	rev, err := r.getHere(ctx, key, v)
	if (errors.Is(err, ErrNotFound) || errors.Is(err, ErrUnreadable)) && schemas.Copied(key) {
		back, lost := r.bring(ctx, key)
		if lost != nil {
			return rev, lost
		}
		if back {
			return r.getHere(ctx, key, v)
		}
	}
	return rev, err
}

// getHere is get of the bucket alone.
func (r *Registry) getHere(ctx context.Context, key string, v any) (uint64, error) {
	e, err := streams.DecideLast(ctx, r.js, schemas.KVStream, schemas.KVSubject(key))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, fmt.Errorf("%w: %s", ErrNotFound, key)
	}
	if err == nil && len(e.Data) == 0 { // deleted
		return e.Sequence, fmt.Errorf("%w: %s", ErrNotFound, key)
	}
	if err != nil {
		return 0, fmt.Errorf("registry: reading %s: %w", key, err)
	}
	return e.Sequence, decode(key, e.Data, v)
}

// decode reads an entry's bytes. What is not readable, or is the entry of another key, is
// ErrUnreadable.
func decode(key string, data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return unreadable(key, err)
	}
	own := key
	switch v := v.(type) {
	case *schemas.Topic:
		if own = schemas.TopicKey(v.Name); own == key {
			if err := schemas.ValidateTopicName(v.Name); err != nil {
				return unreadable(key, err)
			}
		}
	case interface{ Key() string }:
		own = v.Key()
	case interface{ key() string }:
		own = v.key()
	}
	if own != key {
		return unreadable(key, fmt.Errorf("it speaks of %q", own))
	}
	return nil
}

// change is one key's new value, under the expectation that it still has the
// revision rev (0: it does not exist).
type change struct {
	key string
	rev uint64
	any bool // whatever is there
	v   any

	// count and copied are set by number: the entry's count, and the revision of its copy.
	count, copied uint64
}

// commit writes all changes or none, sets each one's new revision, and then writes their
// copies. After streams.ErrCut it is not known whether it did: read again.
func (r *Registry) commit(ctx context.Context, changes ...*change) error {
	if err := r.number(ctx, changes); err != nil {
		return err
	}
	msgs := make([]*nats.Msg, len(changes))
	for i, c := range changes {
		data, err := json.Marshal(c.v)
		if err != nil {
			return err
		}
		m := nats.NewMsg(schemas.KVSubject(c.key))
		m.Data = data
		if c.count > 0 {
			m.Header.Set(schemas.HeaderCount, strconv.FormatUint(c.count, 10))
		}
		if !c.any {
			m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, fmt.Sprint(c.rev))
		}
		msgs[i] = m
	}
	last, err := streams.Once(ctx, func(ctx context.Context) (uint64, error) { return streams.Commit(ctx, r.js, msgs...) })
	if err != nil {
		return commitError(changes, err)
	}
	for i, c := range changes {
		c.rev = last - uint64(len(changes)-1-i)
	}
	return r.copyChanges(ctx, changes, msgs)
}

func commitError(changes []*change, err error) error {
	if streams.LostRace(err) {
		return fmt.Errorf("%w: %s", ErrConflict, changes[0].key)
	}
	return fmt.Errorf("registry: writing %s: %w", changes[0].key, err)
}

// scan calls f for the present value of each key that matches the filter.
func (r *Registry) scan(ctx context.Context, filter string, f func(key string, rev uint64, value []byte) error) error {
	prefix := len(schemas.KVSubject(""))
	err := streams.Latest(ctx, r.js, schemas.KVStream, schemas.KVSubject(filter), func(msg *streams.Message) error {
		if len(msg.Data) == 0 { // a purged key has no data
			return nil
		}
		err := f(msg.Subject[prefix:], msg.Sequence, msg.Data)
		if u := (*UnreadableError)(nil); errors.As(err, &u) {
			u.Rev, u.Value = msg.Sequence, msg.Data
		}
		if r.odd != nil && errors.Is(err, ErrUnreadable) {
			r.odd(err)
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("registry: listing %s: %w", filter, err)
	}
	return nil
}

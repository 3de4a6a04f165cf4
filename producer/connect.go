package producer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/privacy"
)

// Connect dials NATS and starts a producer that owns the connection. It fails
// with ErrUnknownTopic when the topic is not declared, and
// when no server answers, but for the policy Spool once its directory knows the
// topic; from then on the connection comes back by itself, for
// as long as it takes. ctx bounds connecting and reading the topic.
func Connect(ctx context.Context, url string, cfg Config) (*Producer, error) {
	if _, err := cfg.declared(); err != nil {
		return nil, err
	}
	cfg.Hooks = cfg.Hooks.oneByOne()
	if cfg.Policy == Spool {
		return connectSpooling(ctx, url, cfg)
	}
	asking, deny := context.WithCancelCause(ctx)
	defer deny(nil)
	nc, err := dial(ctx, url, cfg, deny)
	if err != nil {
		return nil, err
	}
	p, err := New(asking, nc, cfg)
	if err != nil {
		nc.Close()
		return nil, unlessDenied(asking, err)
	}
	p.sender.link.(*natsLink).owned = true
	return p, nil
}

// connectSpooling is Connect with the policy Spool: once the spool knows the
// topic, it does not need a server.
func connectSpooling(ctx context.Context, url string, cfg Config) (*Producer, error) {
	cfg, _ = cfg.declared() // it was checked
	s, err := openSpool(cfg)
	if err != nil {
		return nil, err
	}
	given := cfg.NATS
	if s.topic != nil {
		cfg.NATS = append([]nats.Option{nats.RetryOnFailedConnect(true)}, given...)
	}
	asking, deny := context.WithCancelCause(ctx)
	defer deny(nil)
	nc, err := dial(ctx, url, cfg, deny)
	if err != nil {
		if s.topic == nil {
			err = fmt.Errorf("%w (the spool in %s does not know the topic yet: the first start needs the server)", err, cfg.SpoolDir)
		}
		return nil, errors.Join(err, s.Close())
	}
	p, err := newSpooling(asking, nc, cfg, s)
	if err != nil {
		nc.Close()
		return nil, unlessDenied(asking, err)
	}
	p.sender.link.(*natsLink).owned = true
	return p, nil
}

// Of the connection Connect makes. One write waits no longer than an answer may.
const (
	dialTimeout = 2 * time.Second
	// A server is back within a second or so of a crash, and what is logged
	// meanwhile waits in the buffer; the jitter keeps many producers apart.
	reconnectWait = 250 * time.Millisecond
)

func dial(ctx context.Context, url string, cfg Config, deny context.CancelCauseFunc) (*nats.Conn, error) {
	opts := []nats.Option{
		nats.Name("almanac producer " + cfg.Topic),
		nats.Timeout(dialTimeout),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(reconnectWait, time.Second),
		nats.ReconnectBufSize(-1),   // the producer keeps frames itself, and knows which
		nats.IgnoreAuthErrorAbort(), // credentials that are refused for a while must not end it for good
		nats.FlusherTimeout(DefaultAckTimeout),
		schemas.Liveness,
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			cfg.Hooks.OnError(fmt.Errorf("nats: %w", err))
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // nil: Close
				cfg.Hooks.OnError(fmt.Errorf("nats: disconnected: %w", err))
			}
		}),
	}
	type result struct {
		nc  *nats.Conn
		err error
	}
	dialled := make(chan result, 1)
	go func() {
		nc, err := schemas.Connect(url, append(append(opts, cfg.NATS...), schemas.OwnInbox, hearDenials(deny))...)
		dialled <- result{nc, err}
	}()
	select {
	case r := <-dialled:
		if r.err != nil {
			return nil, fmt.Errorf("%w to NATS at %s: %w", ErrConnect, privacy.MaskedURL(url), privacy.MaskedError(r.err))
		}
		return r.nc, nil
	case <-ctx.Done():
		go func() { // it ends within dialTimeout per server
			if r := <-dialled; r.nc != nil {
				r.nc.Close()
			}
		}()
		return nil, fmt.Errorf("%w to NATS at %s: %w", ErrConnect, privacy.MaskedURL(url), context.Cause(ctx))
	}
}

// askTime is how long NATS may take to answer one question, which is then asked once more.
const askTime = 5 * time.Second

// asked asks NATS, and once more when no answer came: nats.go waits as long as ctx for
// an answer that was lost on the way.
func asked[T any](ctx context.Context, ask func(context.Context) (T, error)) (answer T, err error) {
	for range 2 {
		bounded, cancel := context.WithTimeout(ctx, askTime)
		answer, err = ask(bounded)
		cancel()
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return answer, err
		}
	}
	return answer, fmt.Errorf("NATS did not answer: %w; see whether it runs, then start again", err)
}

// readTopic reads a topic's descriptor from the registry, unless that is of another format, whose readers could not read the events, or is
// being restored.
func readTopic(ctx context.Context, nc *nats.Conn, name string) (schemas.Topic, error) {
	unknown := func(why string) (schemas.Topic, error) {
		return schemas.Topic{}, fmt.Errorf("%w %q: %s Declare it with `almanac topics apply %s`", schemas.ErrUnknownTopic, name, why, name)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return schemas.Topic{}, err
	}
	kv, err := asked(ctx, func(ctx context.Context) (jetstream.KeyValue, error) { return js.KeyValue(ctx, schemas.Bucket) })
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return unknown("the server has no registry.")
	}
	if err != nil {
		return schemas.Topic{}, fmt.Errorf("cannot read the registry: %w", err)
	}
	bucket, err := asked(ctx, kv.Status)
	if err != nil {
		return schemas.Topic{}, fmt.Errorf("cannot read the registry: %w", err)
	}
	if err := schemas.CheckBucket(bucket.Metadata(), nc.ConnectedUrlRedacted()); err != nil {
		return schemas.Topic{}, err
	}
	entry, err := asked(ctx, func(ctx context.Context) (jetstream.KeyValueEntry, error) { return kv.Get(ctx, schemas.TopicKey(name)) })
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return unknown("it is not declared" + cmp.Or(nearestTopic(ctx, kv, name), "."))
	}
	if err != nil {
		return schemas.Topic{}, fmt.Errorf("cannot read topic %q from the registry: %w", name, err)
	}
	var t schemas.Topic
	if err := json.Unmarshal(entry.Value(), &t); err != nil {
		return schemas.Topic{}, fmt.Errorf("%w: the registry's entry of %q is not a descriptor: %w", schemas.ErrTopic, name, err)
	}
	return t, t.Validate()
}

// nearestTopic is the declared topic whose name is nearest to one that is not, as a part of the refusal.
func nearestTopic(ctx context.Context, kv jetstream.KeyValue, name string) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second) // it is a hint: an account may lack the right
	defer cancel()
	list, err := kv.ListKeysFiltered(ctx, schemas.TopicKeys)
	if err != nil {
		return ""
	}
	defer func() { _ = list.Stop() }()
	var known []string
	for {
		select {
		case key, more := <-list.Keys():
			if more {
				known = append(known, strings.TrimPrefix(key, schemas.TopicKey("")))
				continue
			}
			if near := schemas.Nearest(name, known); near != "" {
				return ", did you mean " + near + "?"
			}
			return ""
		case <-ctx.Done():
			return ""
		}
	}
}

// newProducerID is 16 random hex digits.
func newProducerID() string { return fmt.Sprintf("%016x", rand.Uint64()) }

package streams

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// Range is what a consumer reads.
type Range struct {
	Filter string
	// From is the first sequence; 0: all of them.
	From uint64
	// LastPerSubject begins with the last message of each subject.
	LastPerSubject bool
	// HeadersOnly leaves payloads out.
	HeadersOnly bool
}

// pullIdle is how long the server keeps the consumer of a reader that died.
const pullIdle = 30 * time.Second

// puller is one ephemeral consumer. What a message is stands in its reply subject,
// which the server writes and no publisher can: nats.go also believes a header
// named Status in an empty message, which any publisher may set.
type puller struct {
	js      jetstream.JetStream
	stream  string
	name    string
	inbox   string
	answers chan *nats.Msg
	sub     *nats.Subscription
	pending uint64 // that the server counted when it made the consumer
	got     uint64 // messages
	last    uint64 // sequence of the last one
}

// newPuller makes a consumer; ahead bounds the messages asked for at once.
func newPuller(ctx context.Context, js jetstream.JetStream, stream string, r Range, ahead int) (*puller, error) {
	cfg := jetstream.ConsumerConfig{
		FilterSubject: r.Filter, HeadersOnly: r.HeadersOnly, DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, InactiveThreshold: pullIdle, Replicas: 1,
	}
	switch {
	case r.From > 0:
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, r.From
	case r.LastPerSubject:
		cfg.DeliverPolicy = jetstream.DeliverLastPerSubjectPolicy
	}
	// Each time under another name, and so on another server: one without a reader ends by itself.
	ask := func(ctx context.Context) (jetstream.Consumer, error) { return js.CreateConsumer(ctx, stream, cfg) }
	asked := Once[jetstream.Consumer] // who reads asks again for all of it
	if schemas.Elects(js.Conn()) {
		asked = func(ctx context.Context, ask func(context.Context) (jetstream.Consumer, error)) (jetstream.Consumer, error) {
			return Asked(ctx, js.Conn(), ask)
		}
	}
	cons, err := asked(ctx, ask)
	if err != nil {
		return nil, err
	}
	info := cons.CachedInfo()
	p := &puller{js: js, stream: stream, name: info.Name, pending: info.NumPending, inbox: js.Conn().NewInbox(), answers: make(chan *nats.Msg, 2*ahead+16)}
	if p.sub, err = js.Conn().ChanSubscribe(p.inbox, p.answers); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// close waits for no answer: the consumer of a reader that died ends by itself.
func (p *puller) close() {
	if p.sub != nil {
		_ = p.sub.Unsubscribe()
	}
	_ = p.js.Conn().Publish(apiSubject(p.js, "CONSUMER.DELETE."+p.stream+"."+p.name), nil)
}

// pullRequest is as the server takes it.
type pullRequest struct {
	Batch     int           `json:"batch"`
	NoWait    bool          `json:"no_wait,omitempty"`
	Expires   time.Duration `json:"expires,omitempty"`
	Heartbeat time.Duration `json:"idle_heartbeat,omitempty"`
}

func (p *puller) request(req pullRequest) error {
	data, err := json.Marshal(req)
	if err != nil {
		return err
	}
	return p.js.Conn().PublishRequest(apiSubject(p.js, "CONSUMER.MSG.NEXT."+p.stream+"."+p.name), p.inbox, data)
}

// next waits for a message or for what the server says instead. A message that got
// lost on the way, or silence for as long as patience, is ErrCut. What is lost shows
// by the next message's number, or by the next heartbeat where no message follows.
func (p *puller) next(ctx context.Context, patience time.Duration) (*Message, *status, error) {
	var m *nats.Msg
	select {
	case m = <-p.answers:
	default:
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case m = <-p.answers:
		case <-timer.C:
			return nil, nil, cut(ctx, fmt.Errorf("NATS was silent for %s", patience))
		case <-ctx.Done():
			return nil, nil, cut(ctx, nil)
		}
	}
	if !strings.HasPrefix(m.Reply, "$JS.ACK.") {
		s := &status{code: m.Header.Get(headerStatus), reason: m.Header.Get(headerReason)}
		s.pending, _ = strconv.ParseUint(m.Header.Get("Nats-Pending-Messages"), 10, 64)
		// A heartbeat comes after what was delivered before it, and says how much that was.
		if sent, err := strconv.ParseUint(m.Header.Get(headerDelivered), 10, 64); err == nil && s.code == statusHeartbeat && sent != p.got {
			return nil, nil, cut(ctx, fmt.Errorf("NATS delivered %d messages, of which %d came; those after message %d got lost on the way", sent, p.got, p.last))
		}
		return nil, s, nil
	}
	meta, err := m.Metadata()
	if err != nil {
		return nil, nil, fmt.Errorf("streams: a message of %s: %w", p.stream, err)
	}
	if meta.Stream != p.stream || meta.Consumer != p.name {
		return nil, nil, cut(ctx, fmt.Errorf("a message of consumer %s came instead of %s", meta.Consumer, p.name))
	}
	if meta.Sequence.Consumer != p.got+1 {
		return nil, nil, cut(ctx, fmt.Errorf("messages after %d got lost on the way", p.last))
	}
	p.got, p.last = meta.Sequence.Consumer, meta.Sequence.Stream
	out := &Message{
		RawStreamMsg: jetstream.RawStreamMsg{Subject: m.Subject, Sequence: p.last, Time: meta.Timestamp, Header: m.Header, Data: m.Data},
		Pending:      meta.NumPending, Size: len(m.Data),
	}
	return out, nil, nil
}

// sizeOf reads the payload's size from a message that came without one.
func sizeOf(h nats.Header) int {
	n, err := strconv.Atoi(LastValue(h, nats.MsgSize))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

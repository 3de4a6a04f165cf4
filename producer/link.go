package producer

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/schemas"
)

// link is what the sender needs of NATS.
type link interface {
	// start hears answers and passes them to s.answered.
	start(s *sender)
	// publish sends a frame of l. nil means it is on its way, no more.
	publish(l *lane, f *laneFrame) error
	// reconnected has a value after each reconnect.
	reconnected() <-chan nats.Status
	// maxPayload is what the server takes in one message, in bytes.
	maxPayload() int
	// close stops hearing.
	close()
}

// natsLink publishes with core NATS and hears JetStream's answers on one
// subscription. That is leaner than jetstream.PublishMsgAsync, which keeps a
// future, a timer and a window of its own per message, fails them all when the
// connection drops, and stalls when its window is full; here frame, window and
// deadline already exist, and the reply subject says which frame it is about.
type natsLink struct {
	nc     *nats.Conn
	owned  bool // Connect made it
	inbox  string
	sub    *nats.Subscription
	topic  *nats.Subscription // hears that the topic's descriptor is written
	status chan nats.Status
}

func newNatsLink(nc *nats.Conn) *natsLink { return &natsLink{nc: nc, inbox: nc.NewInbox()} }

func (n *natsLink) start(s *sender) {
	n.status = n.nc.StatusChanged(nats.CONNECTED)
	// An error here is a closed connection, which the first publish meets too.
	n.sub, _ = n.nc.Subscribe(n.inbox+".*.*", func(m *nats.Msg) {
		lane, seq, ok := parseReply(m.Subject[len(n.inbox)+1:])
		if !ok {
			return
		}
		v, had, err := answerOf(m)
		if errors.Is(err, errNoStream) && n.elects() {
			err = errNoLeader
		}
		s.answered(answer{lane: lane, seq: seq, outcome: v, had: had, err: err})
	})
	// Where an account may not, the topic is looked at from time to time alone.
	n.topic, _ = n.nc.Subscribe(schemas.KVSubject(schemas.TopicKey(s.p.topic.Name)), func(*nats.Msg) { s.p.look(false) })
}

// elects reports whether there are several servers, which may be without a leader for a while.
func (n *natsLink) elects() bool { return schemas.Elects(n.nc) }

func (n *natsLink) publish(l *lane, f *laneFrame) error {
	topic := l.p.topic.Name
	h := make(nats.Header, 8)
	f.head.SetHeaders(h)
	if f.part != nil {
		h.Set(schemas.HeaderPart, f.part.String())
	}
	h.Set(nats.MsgIdHdr, f.msgID(l))
	return n.nc.PublishMsg(&nats.Msg{
		Subject: schemas.EventsSubject(topic, f.month, l.number),
		Reply:   n.inbox + "." + strconv.Itoa(l.index) + "." + strconv.FormatUint(f.seq, 10),
		Header:  h,
		Data:    f.payload,
	})
}

// msgID is the duplicate-window id of a frame of a lane.
func (f *laneFrame) msgID(l *lane) string {
	if f.part != nil {
		return f.part.MsgID(f.month, l.number)
	}
	return schemas.MsgID(l.id, l.p.topic.Name, l.number, f.seq)
}

// parseReply reads <lane>.<seq>, the end of a reply subject.
func parseReply(s string) (lane int, seq uint64, ok bool) {
	a, b, _ := strings.Cut(s, ".")
	lane64, err1 := strconv.ParseUint(a, 10, 31)
	seq, err2 := strconv.ParseUint(b, 10, 64)
	return int(lane64), seq, err1 == nil && err2 == nil
}

func (n *natsLink) reconnected() <-chan nats.Status { return n.status }

func (n *natsLink) maxPayload() int {
	if m := n.nc.MaxPayload(); m > 0 && m < math.MaxInt32 {
		return int(m)
	}
	return schemas.MaxFrameBytes + headerBytes
}

func (n *natsLink) close() {
	for _, sub := range []*nats.Subscription{n.sub, n.topic} {
		if sub != nil {
			_ = sub.Unsubscribe() // fails on a closed connection, where it is not needed
		}
	}
	n.nc.RemoveStatusListener(n.status)
	if n.owned {
		n.nc.Close()
	}
}

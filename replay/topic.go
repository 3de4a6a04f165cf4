package replay

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/privacy"
)

// target is the topic that a job is replayed into.
type target struct {
	topic schemas.Topic
	// alike says that an event has the same lane in both topics, and versions, by
	// schema version of the source, the version of the target with the same
	// columns: such frames are passed on as they are.
	alike    bool
	versions map[int]int
	// privacy is of the rules that the source has and got later than its first events; nil: none.
	privacy *privacy.Rules
}

// lateRules returns the target with those of its privacy rules that events of the source may be stored without, because
// the source got them later. They are applied once more to all. A hash must not be hashed again, and rows do not say
// whether theirs are hashes.
func lateRules(source, target *schemas.Topic) (*schemas.Topic, error) {
	left := *target
	left.PII = nil
	for _, rule := range target.PII {
		i := slices.IndexFunc(source.PII, rule.Alike)
		if i < 0 {
			return nil, refuse(nil, "topic %s has the privacy rule %s and %s has not: its events would come in clear; add the rule there, or replay into another topic",
				target.Name, rule, source.Name)
		}
		if source.PII[i].Since == 0 {
			continue
		}
		if rule.Rule == schemas.PrivacyHash {
			return nil, refuse(nil, "topic %s has the privacy rule %s, which %s got after its first events: they would come in clear; replay into a topic without the rule",
				target.Name, rule, source.Name)
		}
		left.PII = append(left.PII, rule)
	}
	return &left, nil
}

func (r *Replayer) target(ctx context.Context, j *Job) (*target, error) {
	topic, err := r.cfg.Registry.Topic(ctx, j.spec.Into)
	if err != nil {
		return nil, err
	}
	if err := topic.CheckEvents(); err != nil {
		return nil, refuse(nil, "%v", err)
	}
	if topic.Kind != j.topic.Kind && (topic.Kind != schemas.KindLog || !frame.SameColumns(&j.topic, j.topic.Version, &topic, topic.Version)) {
		return nil, refuse(nil, "topic %s is of kind %s and %s of kind %s: replay into a topic of kind %s, or into one of kind %s with the same fields",
			j.topic.Name, j.topic.Kind, topic.Name, topic.Kind, j.topic.Kind, schemas.KindLog)
	}
	late, err := lateRules(&j.topic, &topic)
	if err != nil {
		return nil, err
	}
	t := &target{topic: topic, versions: map[int]int{}, privacy: privacy.New(late, nil)}
	// A frame of a topic that has events once has each id once. One of another may have an id as often as it likes.
	sameIDs := !topic.HasOnce() || j.topic.HasOnce()
	t.alike = sameIDs && lanedAlike(&j.topic, &topic) && (t.privacy == nil || !topic.HasIdentity())
	for v := 1; v <= j.topic.Version; v++ {
		for w := 1; w <= topic.Version; w++ {
			if frame.SameColumns(&j.topic, v, &topic, w) {
				t.versions[v] = w
			}
		}
	}
	return t, nil
}

// lanedAlike reports whether each event of a topic has the same lane in another. Where that one's events have an identity,
// the source must have cut its lanes by the same.
func lanedAlike(source, target *schemas.Topic) bool {
	if source.Lanes != target.Lanes || !slices.Equal(source.LaneBy, target.LaneBy) {
		return false
	}
	if target.Lanes == 1 || !target.HasIdentity() {
		return true
	}
	return source.HasIdentity() && source.Kind == target.Kind && !slices.ContainsFunc(target.LaneBy, func(by string) bool {
		in := func(fields []schemas.Field) (f schemas.Field) {
			if i := slices.IndexFunc(fields, func(f schemas.Field) bool { return f.Name == by }); i >= 0 {
				f = fields[i]
			}
			return f
		}
		a, b := in(source.Fields), in(target.Fields)
		return a.Type != b.Type || a.From != b.From
	})
}

// outFrame is a frame for the target, complete but for the producer.
type outFrame struct {
	schemas.Frame
	lane int
	// part counts the frames of one lane that one unit became: one, unless they
	// would not fit.
	part    int
	payload []byte
}

// laneBuilders cut a unit's events into frames of the target's lanes. They cut alike whichever source
// gives the events: a frame that is sent again must be the one that the router knows by
// its number.
type laneBuilders struct {
	t        *target
	producer string // the lane key of events without one
	builders map[int]*frame.Builder
	parts    map[int]int
	u        *unit
	events   []eventAt
}

// eventAt is an event of a block that is open.
type eventAt struct {
	reader *frame.Reader
	i      int
}

func (e eventAt) compare(o eventAt) int {
	return cmp.Or(cmp.Compare(e.reader.Ts(e.i), o.reader.Ts(o.i)), e.reader.ID(e.i).Compare(o.reader.ID(o.i)))
}

func newLaneBuilders(j *Job) *laneBuilders {
	return &laneBuilders{t: j.target, producer: j.ID(), builders: map[int]*frame.Builder{}, parts: map[int]int{}}
}

func (l *laneBuilders) begin(u *unit) {
	l.u, l.events = u, l.events[:0]
	clear(l.parts)
}

// pass takes the unit's frame as it is, if the target's frames are alike and its rows in ClickHouse
// would be one frame too.
func (l *laneBuilders) pass(u *unit) bool {
	v, same := l.t.versions[u.frame.Schema]
	if !l.t.alike || !same || l.t.privacy != nil || u.frame.RawBytes > maxWholeBytes {
		return false
	}
	f := u.frame.Frame
	f.Schema = v
	u.frames, u.events = append(u.frames, outFrame{Frame: f, lane: u.shard.ID.Lane(), payload: u.data}), f.Rows
	return true
}

// maxWholeBytes is what a frame may have decompressed so that its events fit one frame again,
// however they are ordered: those of producers have less (schemas.FrameRawBytes).
const maxWholeBytes = schemas.MaxFrameBytes - 16<<10

// add takes an event of a block that stays open until end.
func (l *laneBuilders) add(r *frame.Reader, i int) { l.events = append(l.events, eventAt{r, i}) }

// append adds an event to the frame of its lane.
func (l *laneBuilders) append(r *frame.Reader, i int, whole bool) {
	e := r.Event(i)
	// The builder sets the mark of invalid text again.
	e.Attrs = slices.DeleteFunc(e.Attrs, func(a schemas.Attr) bool { return a.Key == schemas.AttrInvalidUTF8 })
	if l.t.privacy != nil {
		l.t.privacy.Apply(&e)
	}
	lane := l.u.shard.ID.Lane() // as pass has it: whichever way a frame goes when it is sent again
	if !l.t.alike {
		lane = schemas.LaneOf(&l.t.topic, &e, r.Ts(i), l.producer)
	}
	b := l.builders[lane]
	if b == nil {
		b = frame.NewBuilder(&l.t.topic)
		l.builders[lane] = b
	}
	once := l.t.topic.HasOnce() && !whole // whole ones were a frame of such a topic
	if !whole && !b.Fits(&e) || once && b.IDs.Often(e.ID) {
		l.close(lane, b)
	}
	if once {
		b.IDs.Add(e.ID)
	}
	b.Append(&e, r.Ts(i), e.ID)
	if !whole && b.Full() {
		l.close(lane, b)
	}
}

func (l *laneBuilders) close(lane int, b *frame.Builder) {
	f, payload := b.Encode()
	l.u.frames = append(l.u.frames, outFrame{Frame: f, lane: lane, part: l.parts[lane], payload: bytes.Clone(payload)})
	l.parts[lane]++
	b.Reset()
}

func (l *laneBuilders) end(u *unit) {
	slices.SortStableFunc(l.events, eventAt.compare)
	if !l.whole() {
		for _, e := range l.events {
			l.append(e.reader, e.i, false)
		}
	}
	for lane := range l.t.topic.Lanes {
		if b := l.builders[lane]; b != nil && b.Rows() > 0 {
			l.close(lane, b)
		}
	}
	if len(u.frames) > 0 {
		first := slices.MinFunc(u.frames, func(a, b outFrame) int { return int(min(1, max(-1, a.MinTs-b.MinTs))) })
		u.rows = []entry{{ts: first.MinTs, events: u.events}}
	}
}

// whole makes one frame of the events, where the source had them in one that pass would take.
func (l *laneBuilders) whole() bool {
	if !l.t.alike || len(l.events) == 0 || len(l.events) > schemas.MaxFrameRows {
		return false
	}
	for _, e := range l.events {
		l.append(e.reader, e.i, true)
		if b := l.builders[l.u.shard.ID.Lane()]; b.RawBytes() > schemas.MaxFrameRawBytes/2 {
			b.Reset()
			return false
		}
	}
	b := l.builders[l.u.shard.ID.Lane()]
	if f, payload := b.Encode(); len(payload) <= schemas.MaxFrameBytes {
		l.u.frames = append(l.u.frames, outFrame{Frame: f, lane: l.u.shard.ID.Lane(), payload: bytes.Clone(payload)})
		b.Reset()
		return true
	}
	b.Reset()
	return false
}

// producerOf is who a job is to the router, for one shard of its source: the same
// each time, so that what it sends again is known.
func producerOf(job string, s schemas.Shard, part int) string {
	sum := sha256.Sum256([]byte("replay " + job + " " + s.String()))
	name := hex.EncodeToString(sum[:8])
	if part > 0 {
		name += "-" + strconv.Itoa(part)
	}
	return name
}

// topicSink publishes frames.
type topicSink struct {
	j   *Job
	out *streams.Publisher
}

func (t *target) sink(j *Job) (sink, error) {
	out, err := streams.NewPublisher(j.r.cfg.NATS)
	return &topicSink{j: j, out: out}, err
}

func (s *topicSink) event(ctx context.Context, u *unit, _ int) error { return s.unit(ctx, u) }

func (s *topicSink) unit(ctx context.Context, u *unit) error {
	for _, f := range u.frames {
		f.Producer, f.Seq = producerOf(s.j.ID(), u.shard.ID, f.part), u.end.Number
		msg := schemas.EventsFrame(s.j.target.topic.Name, u.shard.Month, f.lane, f.Frame, f.payload)
		err := s.out.Publish(ctx, msg, func(duplicate bool) {
			if duplicate {
				s.j.done.repeated.Add(uint64(f.Rows))
			}
		})
		if err != nil {
			return fmt.Errorf("replay: %w", err)
		}
	}
	return nil
}

// flush waits for every answer; a frame without one is sent again, as it was.
func (s *topicSink) flush(ctx context.Context) error {
	if err := s.out.Flush(ctx); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	return nil
}

package repair

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// Check makes frames of a message of EVENTS as the router does, in order, and says how
// many dead letters it would keep of it.
type Check func(t *schemas.Topic, msg *streams.Message) (frames []schemas.Frame, payloads [][]byte, dead int)

// Config is what a repairer is given.
type Config struct {
	NC       *nats.Conn
	Registry *registry.Registry // may be empty
	DB       *tables.DB
	Check    Check
	// HasKey says that Check has the key of topics' hash rules, as routers have it.
	// Without it nothing is recovered from bare JSON of such a topic.
	HasKey bool
	// NothingErased says that no erasure was ever entered. Without it a topic that the registry lost
	// is left alone where ClickHouse lost its copy of the ledger as well.
	NothingErased bool
	// MaxWait is how long a sink may take to store a frame before its work is done
	// for it; 0 means DefaultMaxWait.
	MaxWait time.Duration
	// Crash, when set, is called at the named points where tests end a repair.
	Crash func(point string)
}

// Repairer finds damage and heals it. It may run while events flow.
type Repairer struct {
	js     jetstream.JetStream
	events jetstream.Stream
	shards jetstream.Stream
	reg    *registry.Registry
	db     *tables.DB
	check  Check
	hasKey bool

	nothingErased bool

	maxWait time.Duration
	crash   func(point string)
}

// DefaultMaxWait is far above what a sink waits for company, and a second insert
// after the same head is refused, whichever process makes it.
const DefaultMaxWait = 10 * time.Second

// New prepares a repairer.
func New(ctx context.Context, cfg Config) (*Repairer, error) {
	if cfg.NC == nil || cfg.Registry == nil || cfg.DB == nil || cfg.Check == nil {
		return nil, errors.New("repair: Config.NC, Registry, DB or Check is missing")
	}
	js, err := jetstream.New(cfg.NC)
	if err != nil {
		return nil, err
	}
	r := &Repairer{js: js, reg: cfg.Registry.WithThird(cfg.DB), db: cfg.DB, check: cfg.Check, hasKey: cfg.HasKey, nothingErased: cfg.NothingErased, maxWait: cmp.Or(cfg.MaxWait, DefaultMaxWait), crash: cfg.Crash}
	if r.crash == nil {
		r.crash = func(string) {}
	}
	if r.events, err = streams.Open(ctx, js, schemas.StreamEvents); err != nil {
		return nil, fmt.Errorf("repair: stream %s: %w", schemas.StreamEvents, err)
	}
	if r.shards, err = streams.Open(ctx, js, schemas.StreamShards); err != nil {
		return nil, fmt.Errorf("repair: stream %s: %w", schemas.StreamShards, err)
	}
	return r, nil
}

// leaves says that a message is left alone: JSON whose fields cannot be hashed as
// the routers did.
func leaves(hasKey bool, t *schemas.Topic, h nats.Header) bool {
	return !hasKey && t.NeedsPrivacyKey() && !schemas.HasFrameHeaders(h)
}

// Plan finds what is damaged, of one topic or of all, and how it can be healed.
// Nothing is changed.
func (r *Repairer) Plan(ctx context.Context, topic string) (*Plan, error) {
	p := &Plan{}
	topics, err := r.topics(ctx, topic, p)
	if err != nil {
		return nil, err
	}
	for i := range topics {
		if t := &topics[i].topic; t.Front() != "" { // its lanes' messages are records of another stream
			p.note("%s: of topics of kind %s the rows and frames are not examined: that is not built; `almanac verify %s` says what is wrong", t.Name, t.Kind, t.Name)
			before := len(p.Actions)
			if err := r.planLostEntries(ctx, &topics[i], p); err != nil {
				return nil, err
			}
			if p.checkpoints(before) > 0 {
				p.note("%s: %s is examined once the checkpoints say how far it was routed: run repair again", t.Name, t.Front())
			} else if !topics[i].lost {
				if err := r.planFront(ctx, t, p); err != nil {
					return nil, err
				}
				if err := r.planLeave(ctx, t, p); err != nil {
					return nil, err
				}
			}
			continue
		}
		if err := r.planTopic(ctx, &topics[i], p); err != nil {
			return nil, err
		}
	}
	p.removeOdd(topic, topics)
	return p, nil
}

// planTopic adds what one topic needs.
func (r *Repairer) planTopic(ctx context.Context, t *found, p *Plan) error {
	if !r.hasKey && t.topic.NeedsPrivacyKey() {
		p.note("%s: hashes fields and pii_key is not set; JSON in %s is left alone, for without the routers' key it would come back other than it was: set pii_key to what they have to recover it", t.topic.Name, schemas.StreamEvents)
	}
	err := r.look(ctx, t, p)
	if errors.Is(err, registry.ErrUnreadable) {
		t.alone = true
		p.note("%s is left alone, for what was erased might come back: %s", t.topic.Name, err)
		return nil
	}
	if err != nil {
		return err
	}
	t.leaveForeign(p)
	for _, ref := range t.refs() {
		if err := r.planShard(ctx, t, ref, p); err != nil {
			return err
		}
	}
	planEntries(t, p)
	if err := r.planLanes(ctx, t, p); err != nil {
		return err
	}
	if !t.lost && p.Todo() == 0 { // by checkpoints and ends as they are now, which other actions may change: the next plan looks again
		if err := r.planLeave(ctx, &t.topic, p); err != nil {
			return err
		}
	}
	t.planDescriptor(p)
	return nil
}

// planDescriptor adds the descriptor of a topic that the registry lost: last, since routers and
// sinks begin as soon as they know the topic.
func (t *found) planDescriptor(p *Plan) {
	if t.lost {
		p.add(Action{Do: RestoreTopic, Topic: t.topic.Name, Where: schemas.TopicKey(t.topic.Name), Source: "ClickHouse", topic: &t.topic,
			Detail: fmt.Sprintf("%d lanes, schema version %d, %d promoted fields", t.topic.Lanes, t.topic.Version, len(t.topic.Fields))})
	}
}

// checkpoints counts those to be written among the actions from one on.
func (p *Plan) checkpoints(from int) (n int) {
	for i := range p.Actions[from:] {
		if p.Actions[from+i].Do == RestoreCheckpoint {
			n++
		}
	}
	return n
}

// planLostEntries adds what the registry lost of a topic of documents or timers: entries of shards
// and months, what it has of them from before, the checkpoints, and the descriptor.
func (r *Repairer) planLostEntries(ctx context.Context, t *found, p *Plan) error {
	seen := &Plan{} // what look notes concerns rows and lanes
	if err := r.look(ctx, t, seen); err != nil {
		if errors.Is(err, registry.ErrUnreadable) {
			p.note("%s is left alone, for what was erased might come back: %s", t.topic.Name, err)
			return nil
		}
		return err
	}
	last, err := r.db.ShardRecords(ctx, &t.topic)
	if err != nil {
		return err
	}
	planEntries(t, seen)
	for _, a := range seen.Actions {
		ok := a.Do == RestoreShard || a.Do == RestoreMonth
		if a.Do == CorrectShard {
			a.entry, ok = widened(t.entries[a.ref.ID], a.entry)
		}
		if ok {
			p.add(a)
		}
	}
	for _, ref := range t.refs() {
		t.completeGone(ref, p)
		t.planWentBack(ref, p)
	}
	if err := r.planFrontLanes(ctx, t, last, p); err != nil {
		return err
	}
	t.planDescriptor(p)
	return nil
}

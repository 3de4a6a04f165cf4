package documents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/fronts"
	archive "github.com/almanac-events/almanac/internal/query/documents"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Collection is the documents of one topic. It is safe for concurrent use.
type Collection struct {
	topic schemas.Topic
	w     *fronts.Writer
	reg   *registry.Registry
	cfg   Config
	// removed refuses writes once the topic was removed.
	removed *registry.Guard
	// ledger says what is being erased.
	ledger *registry.LedgerCache
	// taken: the last creates found an id taken, so those that follow look first.
	taken atomic.Bool
	// seen are versions that a write may expect without a look.
	seen remembered

	mu    sync.Mutex
	usage usageSeen
}

// Config is how a collection is used. The zero value stores and loads what is hot.
type Config struct {
	// By says who writes; it is kept with each version.
	By string
	// Archive reads what is archived. Nil: loads of cold bodies, lists and histories are
	// ErrArchive.
	Archive *archive.Reader
	// Write is how records are written.
	Write fronts.Config
	// Now is the clock of tests. Default that of the NATS server, whatever the machine's says.
	Now func() time.Time
}

// Document is a document as a caller has it.
type Document struct {
	ID      string    `json:"id"`
	Path    string    `json:"path"`
	Version uint64    `json:"version"`
	Created time.Time `json:"created"`
	Changed time.Time `json:"changed"`
	By      string    `json:"by,omitempty"`
	Op      string    `json:"op,omitempty"` // of a version in a history
	// Made: the write that returned it created the document.
	Made bool `json:"-"`
	// Body is null where retention cleared it; a removed document is without one.
	Body json.RawMessage `json:"body,omitempty"`
}

// Draft is a document to be created.
type Draft struct {
	ID string // empty: one is generated
	// Path is that of the document; one that is there must be under it, unless it is empty.
	Path string
	Body []byte
	// Created is when it was created elsewhere; zero: now.
	Created time.Time
}

// Open opens the documents of a topic. ErrKind where it is of another kind, ErrLostFront
// where DOCS does not have what was routed from it.
func Open(ctx context.Context, nc *nats.Conn, topic string, cfg Config) (*Collection, error) {
	reg, err := registry.Open(ctx, nc)
	if err != nil {
		return nil, err
	}
	t, err := reg.TopicOf(ctx, topic, kinds.Document)
	if wrong := (*registry.WrongKindError)(nil); errors.As(err, &wrong) {
		return nil, fmt.Errorf("%w: %w", ErrKind, err)
	}
	if err != nil {
		return nil, err
	}
	w, err := fronts.Open(ctx, reg.JetStream(), schemas.StreamDocs, cfg.Write)
	if err != nil {
		return nil, err
	}
	c := &Collection{topic: t, removed: registry.NewGuard(reg, t, time.Now()), w: w, reg: reg, cfg: cfg, ledger: registry.NewLedgerCache(reg)}
	return c, c.checkFront(ctx)
}

// now is the time of a change, unix ns.
func (c *Collection) now(ctx context.Context) (int64, error) {
	if c.cfg.Now != nil {
		return c.cfg.Now().UnixNano(), nil
	}
	return c.w.Now(ctx)
}

// Gone reports whether a write found that the topic was removed: open it again.
func (c *Collection) Gone() bool { return c.removed.Gone() }

// Topic returns the topic's descriptor.
func (c *Collection) Topic() schemas.Topic { return c.topic }

// checkFront refuses a front that lost records: an id that was lost would seem free.
func (c *Collection) checkFront(ctx context.Context) error {
	js := c.reg.JetStream()
	routed, err := streams.Checkpoints(ctx, js, c.topic.Name)
	if err != nil {
		return err
	}
	misfits, err := streams.Misfits(ctx, js, &c.topic, routed)
	if err != nil {
		return err
	}
	for lane, why := range misfits {
		return fmt.Errorf("%w: lane %s of topic %q: %s; ids that were lost would seem free, so nothing is written. See docs/documents.md, \"A lost front\"", ErrLostFront, lane, c.topic.Name, why)
	}
	return nil
}

// Condition says which version an update or removal expects.
type Condition struct{ version uint64 }

// Always takes whatever version is there.
var Always = Condition{}

// IfVersion takes the version alone that a caller read.
func IfVersion(n uint64) Condition { return Condition{n} }

// tries bounds how often a write is evaluated again because others came first. Each race is lost to another write, so a
// document that a hundred writers change at once takes them all.
const tries = 100

// Create stores a new document; ErrExists where the id is taken.
func (c *Collection) Create(ctx context.Context, n Draft) (*Document, error) {
	return c.Write(ctx, Op{Kind: Create, ID: n.ID, Path: n.Path, Body: n.Body, Created: n.Created})
}

// Put creates a document, or replaces the body of the one that is there. *PathError where that is
// under another path.
func (c *Collection) Put(ctx context.Context, n Draft) (*Document, error) {
	return c.Write(ctx, Op{Kind: Put, ID: n.ID, Path: n.Path, Body: n.Body, Created: n.Created})
}

// Update replaces a document's body, and keeps its path and Created. *VersionError where
// the condition does not hold.
func (c *Collection) Update(ctx context.Context, id string, cond Condition, body []byte) (*Document, error) {
	return c.Write(ctx, Op{ID: id, If: cond, Body: body})
}

// Remove removes a document; ErrNotFound the second time.
func (c *Collection) Remove(ctx context.Context, id string, cond Condition) error {
	_, err := c.Write(ctx, Op{Kind: Remove, ID: id, If: cond})
	return err
}

// Write carries out one change, and returns the version that it made.
func (c *Collection) Write(ctx context.Context, op Op) (*Document, error) {
	docs, err := c.write(ctx, []Op{op})
	if refused := (*BatchError)(nil); errors.As(err, &refused) {
		return nil, refused.Members[0].Err
	}
	if err != nil {
		return nil, err
	}
	return docs[0], nil
}

// last is the document's newest record, nil without a message; document.Nothing where what is there is not a record.
func (c *Collection) last(ctx context.Context, id string) (*document.Record, error) {
	before := c.session()
	r, last, err := fronts.Newest(ctx, c.w, schemas.DocSubject(c.topic.InFronts(), document.Lane(&c.topic, id), id), c.parse)
	switch {
	case err != nil:
		return nil, fmt.Errorf("documents: %q: %w", id, err)
	case r == nil && last > 0:
		return document.Nothing(last), nil
	case r != nil && r.Seq != last:
		r.Last = last
	}
	if r != nil && c.w.Alone() {
		c.seen.put(before, r, time.Now())
	}
	return r, nil
}

// session names the connection between two times that it was lost: what was remembered before may be of sequences that its
// server lost, and gives again. Of several servers another one may lose some, and nothing is remembered.
func (c *Collection) session() uint64 { return c.reg.JetStream().Conn().Stats().Reconnects }

func (c *Collection) parse(msg *streams.Message) (*document.Record, error) {
	r, err := document.Parse(msg.Subject, msg.Sequence, msg.Header, msg.Data, msg.Size)
	if err != nil {
		return nil, fmt.Errorf("documents: message %d of %s: %w; another program wrote it", msg.Sequence, schemas.StreamDocs, err)
	}
	return &r, nil
}

// record is the message of a version that follows last.
func record(r, last *document.Record) fronts.Record {
	out := fronts.Record{Subject: r.Subject(), Header: r.Header(), Data: r.Body, For: fronts.Change}
	switch {
	case r.Removed():
		out.For = fronts.End
	case r.Op == schemas.OpStored:
		out.For = fronts.Grow
	}
	if last != nil {
		out.Expect = last.Expect()
	}
	return out
}

// view is a record as a caller has it.
func view(r *document.Record) *Document {
	body := json.RawMessage(r.Body)
	if len(body) == 0 && !r.Removed() {
		body = json.RawMessage("null")
	}
	return &Document{
		ID: r.ID, Path: r.Path, Version: r.Version, Created: time.Unix(0, r.Created).UTC(), Changed: time.Unix(0, r.Changed).UTC(),
		By: r.By, Body: body,
	}
}

// full makes a front's ErrFull the collection's.
func full(err error) error {
	if errors.Is(err, fronts.ErrFull) {
		return fmt.Errorf("%w: %w; see that ClickHouse and the sinks keep up: what is archived leaves %s", ErrFull, err, schemas.StreamDocs)
	}
	return err
}

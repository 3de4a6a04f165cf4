package billing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Config is what a Closer needs; all but Now and Crash.
type Config struct {
	NATS     *nats.Conn
	Registry *registry.Registry
	Reader   *query.Reader
	// Now is the clock. Default the system's.
	Now func() time.Time
	// Crash is called at the named points where tests end the process.
	Crash func(point string)
}

// Closer closes months and corrects them.
type Closer struct {
	cfg   Config
	usage *usage.Reader
}

// New makes a Closer.
func New(cfg Config) (*Closer, error) {
	if cfg.NATS == nil || cfg.Registry == nil || cfg.Reader == nil {
		return nil, errors.New("billing: Config.NATS, Registry or Reader is missing")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Crash == nil {
		cfg.Crash = func(string) {}
	}
	return &Closer{cfg: cfg, usage: usage.New(cfg.Reader)}, nil
}

// Request names a month and where its bills are published.
type Request struct {
	Topic string
	Month schemas.Month
	// Into is a topic of kind log.
	Into string
	// GroupBy is what a bill is for: BySpace (the default), or another that is not a span of time.
	// Corrections take both from the close.
	GroupBy usage.GroupBy
	Measure usage.Measure
	// DryRun publishes nothing.
	DryRun bool

	from *schemas.Topic // Topic, as it was read
}

// Result is what a call found and published.
type Result struct {
	Topic   string        `json:"topic"`
	Month   string        `json:"month"`
	Into    string        `json:"into"`
	GroupBy usage.GroupBy `json:"group_by"`
	Measure usage.Measure `json:"measure"`
	// Bills of the month; Published are those that this call published.
	Bills     int `json:"bills"`
	Published int `json:"published"`
	// Before: the month was closed already, and nothing is published.
	Before bool `json:"closed_before"`
	// Corrections that this call published, or would.
	Corrections []Correction `json:"corrections,omitempty"`
}

// MaxBills bounds the bills of a month that are published.
const MaxBills = 250_000

// groups are what a bill may be for.
var groups = []usage.GroupBy{usage.BySpace, usage.ByCustomer, usage.ByProvider, usage.ByMeter, usage.BySpaceAndCustomer, usage.ByProviderAndCustomer}

// check refuses what cannot be published, and returns the topic that takes it.
func (d *Closer) check(ctx context.Context, r *Request) (*schemas.Topic, error) {
	bad := func(format string, a ...any) error {
		return fmt.Errorf("%w: %s", schemas.ErrRequest, fmt.Sprintf(format, a...))
	}
	r.GroupBy = r.GroupBy.InOrder()
	if r.GroupBy != "" && !slices.Contains(groups, r.GroupBy) {
		return nil, bad("group-by %q: a month is closed by space, customer, provider or meter, or by space,customer or provider,customer", r.GroupBy)
	}
	if end := time.Unix(0, r.Month.End()).UTC(); d.cfg.Now().Before(end) {
		return nil, bad("month %s ends at %s: close it after that", r.Month, end.Format(time.RFC3339))
	}
	from, err := d.cfg.Registry.Topic(ctx, r.Topic)
	if err != nil {
		return nil, err
	}
	r.from = &from
	into, err := d.cfg.Registry.Topic(ctx, r.Into)
	if err != nil {
		return nil, err
	}
	switch {
	case into.Kind != kinds.Log:
		return nil, bad("topic %q is of kind %s: bills go into a topic of kind %s", r.Into, into.Kind, kinds.Log)
	case len(into.PII) > 0:
		return nil, bad("topic %q has privacy rules, which bills do not go through: publish into a topic without", r.Into)
	}
	return &into, nil
}

// report reads the bills of the month, and the positions that they stand on.
func (d *Closer) report(ctx context.Context, r *Request) (map[Key]usage.Bill, usage.Positions, error) {
	bills := map[Key]usage.Bill{}
	at, err := d.usage.BillsAt(ctx, r.usage(), func(b usage.Bill) error {
		if len(bills) == MaxBills {
			return fmt.Errorf("%w: more than %d bills; close the month by customer, provider or meter", schemas.ErrRequest, MaxBills)
		}
		bills[keyOf(&b)] = b
		return nil
	})
	return bills, at, err
}

// usage is the report of the month.
func (r *Request) usage() usage.Request {
	return usage.Request{Topic: r.Topic, From: time.Unix(0, r.Month.Start()).UTC(), To: time.Unix(0, r.Month.End()).UTC(), GroupBy: r.GroupBy, Measure: r.Measure}
}

// read reads what was published for the month.
func (d *Closer) read(ctx context.Context, r *Request, into *schemas.Topic) (*ledger, error) {
	l := newLedger(r.Topic)
	named := func(attr string) string {
		if slices.ContainsFunc(into.Fields, func(f schemas.Field) bool { return f.Name == attr }) {
			return attr
		}
		return "attributes['" + attr + "']"
	}
	types := []string{schemas.TypeBill, schemas.TypeCorrection, schemas.TypeBucket, schemas.TypePositions}
	req := query.Request{
		Topic: r.Into, From: time.Unix(0, r.Month.End()).UTC(), Ascending: true, Limit: query.MaxLimit,
		Where: fmt.Sprintf("type IN ('%s') AND %s = '%s' AND %s = '%s'", strings.Join(types, "', '"), named(schemas.AttrBilledTopic), r.Topic, named(schemas.AttrBilledMonth), r.Month),
	}
	for {
		page, err := d.cfg.Reader.Query(ctx, req)
		if err != nil {
			return nil, err
		}
		for _, text := range page.Events {
			e, err := readEntry(text)
			if err == nil {
				err = l.take(e)
			}
			if err != nil {
				return nil, fmt.Errorf("billing: an event in %q is not what was published there: %w", r.Into, err)
			}
		}
		if page.Cursor == "" {
			return l, nil
		}
		req.Cursor = page.Cursor
	}
}

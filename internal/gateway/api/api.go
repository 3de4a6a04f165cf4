package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/budget"
	"github.com/almanac-events/almanac/internal/gateway/jobs"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/maintenance/deadletters"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/maintenance/verify"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/replay"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/timers"
)

// Bounds of reads: how many one client may have under way while no other asks. There are a third more, for others (request.WithOthers).
const (
	maxTails  = 64
	maxSQL    = 16
	maxPings  = 4
	maxReads  = 64
	maxLooks  = 16 // at statements, and cancels of them: each asks ClickHouse one line at most
	maxTiming = 256
	maxPages  = 8 // each holds up to 1,000 documents
	sqlBytes  = 1 << 20
	readWait  = 60 * time.Second
)

// Config of the API. Reader and Registry are required; a part that is nil has no routes.
type Config struct {
	Reader   *query.Reader
	Registry *registry.Registry
	// Verify compares a topic, or all when it is empty, and tells how many shards are compared, and of how many.
	Verify func(ctx context.Context, topic string, tell func(shards, of int)) (*verify.Report, error)
	// Eraser makes an eraser that tells how far it is; progress may be nil.
	Eraser func(ctx context.Context, progress func(erasure.Progress)) (*erasure.Eraser, error)
	// Replayer begins replays.
	Replayer *replay.Replayer
	// Letters deals with dead letters.
	Letters *deadletters.Letters
	// Timers opens the timers of a topic.
	Timers func(ctx context.Context, topic string) (*timers.Timers, error)
	// Metrics serves the numbers of the process.
	Metrics http.Handler
	// MCP serves assistants.
	MCP http.Handler
	// Documents opens the documents of a topic.
	Documents func(ctx context.Context, topic string) (*documents.Collection, error)
	// User and Password are of an account that may only read; empty for the reader's own.
	User, Password string
	// TopicSQL says that the server has an account for each set of topics that a token asks SQL of (access.SQLAccounts), with
	// passwords made of Password.
	TopicSQL bool
	// Anyone says that nothing is asked of who asks: for an API that only this process reaches.
	Anyone bool
	// Own reports whether a topic takes nothing of clients, as it has what Almanac itself records; nil: there is none.
	Own func(topic string) bool
	// Rates bounds what a token writes; nil: nothing does.
	Rates Rates
	// Storing says why nothing can be stored now, such as a full disk; nil: it is not known before
	// a write is tried. It answers at once.
	Storing func() error
	// NATSDisk returns how full the disk of this process's own NATS is, and whether anything is known of it, soon also where that
	// disk does not answer; nil: NATS is elsewhere.
	NATSDisk func() (use query.DiskUse, known bool)
	// Version of this program, and Inputs that its events come by; nil: it takes no events.
	Version string
	Inputs  func() []InputUse
	// Listens are where the process takes events.
	Listens Listens
	// Stopping is closed when tails are to end.
	Stopping <-chan struct{}
	// OnError hears what goes wrong beside the requests.
	OnError func(error)
	// OnLimit hears of each request that is refused because too many are under way; it may be nil.
	OnLimit request.OnLimit
	// OnTail hears of each tail that is followed; it may be nil.
	OnTail request.OnTail
}

// API serves reads, and begins jobs.
type API struct {
	cfg               Config
	tails, sql, reads *request.Slots
	pings, looks      *request.Slots
	timing            *request.Slots // requests about timers and single documents
	pages             *request.Slots // pages and batches of documents
	timers            opened[*timers.Timers]
	documents         opened[*documents.Collection]
	proofs            proofs
	jobs              *jobs.Runner
	statements        statements
	bills             *usage.Reader
}

// New prepares the API. Run carries out its jobs.
func New(cfg Config) *API {
	if cfg.Storing == nil {
		cfg.Storing = func() error { return nil }
	}
	slots := func(what string, each int) *request.Slots {
		return request.NewSlots(what, request.WithOthers(each), cfg.OnLimit)
	}
	a := &API{
		cfg: cfg, tails: slots(request.OfTails, maxTails), sql: slots(request.OfStatements, maxSQL), pings: slots(request.OfPings, maxPings), reads: slots(request.OfReads, maxReads), looks: slots(request.OfLooks, maxLooks),
		timing: slots(request.OfTiming, maxTiming), pages: slots(request.OfPages, maxPages),
	}
	a.proofs.known = map[string]*proven{}
	a.jobs = jobs.New(jobs.Config{Registry: cfg.Registry, OnError: cfg.OnError, Workers: a.workers(), Yields: map[string]bool{kindVerify: true}})
	return a
}

// Add adds the routes. Each file that has some has a function for them.
func (a *API) Add(mux *http.ServeMux) {
	for _, add := range []func(routes){
		a.addTopics, a.addCatalog, a.addEvents, a.addCounts, a.addSeries, a.addTail, a.addSQL, a.addClickHouse, a.addSpec, a.addProofs, a.addJobs, a.addErasures, a.addReplays, a.addLetters, a.addTimers, a.addDocuments, a.addUsage, a.addTrail, a.addAlerts, a.addSearches, a.addMetrics, a.addMCP,
	} {
		add(routes{mux, a})
	}
}

// routes take handlers of operations alone, so that no route is without a declaration, nor without a right.
type routes struct {
	mux *http.ServeMux
	a   *API
}

func (on routes) serve(op *operations.Operation, h http.HandlerFunc) {
	for _, pattern := range op.Patterns() {
		on.mux.HandleFunc(pattern, on.a.asked(op, h))
	}
}

// Run carries out jobs until ctx ends.
func (a *API) Run(ctx context.Context) error { return a.jobs.Run(ctx) }

// status is an answer other than 200.
type status struct {
	code  int
	value any
}

// answer returns what a request is answered with: a value as JSON, or a status with one.
type answer func(w http.ResponseWriter, r *http.Request) (any, error)

// read is a handler whose answer is one JSON value.
func (a *API) read(f answer) http.HandlerFunc { return a.within(a.reads, f) }

// within is a handler whose answer is one JSON value, while there are free slots.
func (a *API) within(slots *request.Slots, f answer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := gather(w, r, maxBatchBody); err != nil {
			request.Fail(w, r, err)
			return
		}
		free, err := slots.Take(request.HolderOf(r))
		if err != nil {
			request.Fail(w, r, busy(err))
			return
		}
		defer free()
		ctx, cancel := context.WithTimeout(r.Context(), readWait)
		defer cancel()
		if writes(r) {
			var stop func()
			if ctx, stop = request.WhileStoring(ctx, a.cfg.Storing); stop == nil {
				request.Fail(w, r, notStoring(context.Cause(ctx), "free space on it, then send the request again: nothing of it was written"))
				return
			}
			defer stop()
		}
		v, err := f(w, r.WithContext(ctx))
		if err != nil {
			if lost := request.Lost(ctx); lost != nil {
				err = lost
			}
			if full := (*request.NotStoringError)(nil); errors.As(context.Cause(ctx), &full) {
				err = notStoring(full, "free space on it; whether the request was carried out is not known: read what it writes")
			}
			request.Fail(w, r, a.refusal(err))
			return
		}
		if s, ok := v.(status); ok {
			request.JSON(w, s.code, s.value)
			return
		}
		request.JSON(w, http.StatusOK, v)
	}
}

// writes reports whether a request is answered only once something of it is stored.
func writes(r *http.Request) bool {
	op := operations.Of(r.Pattern)
	return op != nil && (op.Access == operations.Writes || op.Access == operations.ReadsAndWrites)
}

func notStoring(why error, do string) error {
	return request.Refuse(http.StatusInsufficientStorage, "not_storing", why.Error(), do)
}

// busy refuses for now.
func busy(err error) error {
	return request.Refuse(http.StatusTooManyRequests, "busy", err.Error(), "send the request again in a second")
}

// rules say how errors of the parts below are answered; the first that fits counts.
type rules []struct {
	is     error
	status int
	code   string
	hint   string
}

// of is the answer to an error, nil when no rule is for it.
func (all rules) of(err error) *request.Error {
	for _, c := range all {
		if errors.Is(err, c.is) {
			return request.Refuse(c.status, c.code, schemas.Text(err), c.hint)
		}
	}
	return nil
}

// refusals are the rules of every room.
var refusals = rules{
	{filter.ErrLimit, http.StatusForbidden, "row_limit", "who made the token corrects its where: `almanac token rm` and `almanac token add`"},
	{schemas.ErrUnknownTopic, http.StatusNotFound, "unknown_topic", "declare the topic with `almanac topics apply`, or correct its name"},
	{schemas.ErrTopicName, http.StatusBadRequest, "bad_topic_name", ""},
	{query.ErrNoEvent, http.StatusNotFound, "no_such_event", "it may have been erased, or dropped by retention"},
	{query.ErrNoDeadLetter, http.StatusNotFound, "no_such_dead_letter", ""},
	{jobs.ErrNoJob, http.StatusNotFound, "no_such_job", ""},
	{jobs.ErrEnded, http.StatusConflict, "ended", ""},
	{jobs.ErrFull, http.StatusTooManyRequests, "busy", "GET /v1/jobs lists them"},
	{budget.ErrFull, http.StatusServiceUnavailable, "busy", "send the request again in a second"},
	{budget.ErrLarge, http.StatusBadRequest, "too_large", "narrow it with from, to, where or limit"},
	{erasure.ErrRequest, http.StatusBadRequest, "bad_request", ""},
	{schemas.ErrRequest, http.StatusBadRequest, "bad_request", ""},
	{context.DeadlineExceeded, http.StatusGatewayTimeout, "too_slow", "narrow a read with from, to and where; after a write, read what there is before it is sent again"},
}

// refusal is an error of the parts below for the client. One that waited until its time was over for a server that is away says so.
func (a *API) refusal(err error) error {
	if errors.Is(err, context.DeadlineExceeded) && a.cfg.Reader != nil {
		if away := a.cfg.Reader.Away(); len(away) > 0 {
			return ofAway(away)
		}
	}
	return refusal(err)
}

func ofAway(away []query.Away) error {
	said := make([]string, len(away))
	for i, one := range away {
		said[i] = fmt.Sprintf("%s is away since %s: %s", one.Server, one.Since.Format(time.RFC3339), one.Why)
	}
	return request.Refuse(http.StatusServiceUnavailable, "unavailable", strings.Join(said, "; "), "send the request again when /readyz says that it is ready; after a write, read what there is first")
}

// refusal is an error of the parts below for the client.
func refusal(err error) error {
	var own *request.Error
	var denied *access.Denied
	if errors.As(err, &own) || errors.As(err, &denied) || errors.Is(err, access.ErrUnauthenticated) {
		return err
	}
	if refused := refusals.of(err); refused != nil {
		return refused
	}
	return request.Refuse(http.StatusServiceUnavailable, "unavailable", err.Error(), "send the request again; /readyz says what is wrong")
}

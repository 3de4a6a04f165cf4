package lokiread

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/budget"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/query/logql"
	"github.com/almanac-events/almanac/schemas"
)

// Bounds of requests.
const (
	// maxQueries are under way for one client at once; for others there are a third more (request.WithOthers).
	maxQueries = 8
	formBytes  = 1 << 20
	// maxTime of a query: Grafana gives up after half a minute, and Loki's default is a minute.
	maxTime = time.Minute
)

// HeaderTenant names the topic where the path names none.
const HeaderTenant = "X-Scope-OrgID"

// Config of the API.
type Config struct {
	Engine *logql.Engine
	// Anyone says that nothing is asked of who reads: for an API that only this process reaches.
	Anyone bool
	// Version of this program, for buildinfo.
	Version string
	// Stopping is closed when tails are to end; nil: they end with their clients.
	Stopping <-chan struct{}
	// OnLimit hears of each request that is refused because too many are under way; it may be nil.
	OnLimit request.OnLimit
	// OnTail hears of each tail that is followed; it may be nil.
	OnTail request.OnTail
}

// API serves reads.
type API struct {
	cfg   Config
	slots *request.Slots
	tails *request.Slots // topics that are followed
}

// New prepares the API.
func New(cfg Config) *API {
	return &API{
		cfg: cfg, slots: request.NewSlots(request.OfLogQL, request.WithOthers(maxQueries), cfg.OnLimit),
		tails: request.NewSlots(request.OfFollowed, request.WithOthers(maxFollowed), cfg.OnLimit),
	}
}

// Path of the API, after /t/TOPIC or nothing.
const Path = "/loki/api/v1/"

// routes are the paths below Path that take GET and POST.
var routes = map[string]func(*API, *http.Request, logql.Scope) (any, error){
	"query": (*API).query, "query_range": (*API).queryRange,
	"labels": (*API).labels, "label": (*API).labels, "label/{name}/values": (*API).values, "series": (*API).series,
	"index/stats": (*API).stats, "index/volume": (*API).volume, "index/volume_range": (*API).volumeRange,
	"detected_labels": (*API).detectedLabels, "detected_fields": (*API).detectedFields, "detected_field/{name}/values": (*API).detectedValues,
	"patterns": (*API).patterns, "status/buildinfo": (*API).buildinfo,
}

// Patterns are all routes, as http.ServeMux takes them.
func Patterns() (all []string) {
	for path := range routes {
		for _, below := range bases {
			all = append(all, "GET "+below+path, "POST "+below+path)
		}
	}
	for _, below := range bases {
		all = append(all, "GET "+below+pathTail)
	}
	slices.Sort(all)
	return all
}

// bases begin the paths: of the topic that a header names or the gateway's own, and of one in the path.
var bases = []string{Path, "/t/{topic}" + Path}

const pathTail = "tail"

// Add adds the routes.
func (a *API) Add(mux *http.ServeMux) {
	for _, pattern := range Patterns() {
		_, path, _ := strings.Cut(pattern, Path)
		if path == pathTail {
			mux.HandleFunc(pattern, a.tail)
			continue
		}
		f := routes[path]
		mux.HandleFunc(pattern, a.handle(func(r *http.Request, s logql.Scope) (any, error) { return f(a, r, s) }))
	}
}

// serve answers a request, or returns why not. What it returns is written as JSON.
type serve func(r *http.Request, s logql.Scope) (any, error)

// refusal is an error with its status.
type refusal struct {
	status int
	text   string
}

func (e *refusal) Error() string { return e.text }

func badRequest(format string, args ...any) error {
	return &refusal{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// handle reads the form, bounds the request and writes its answer.
func (a *API) handle(f serve) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, scope := access.From(r.Context()), a.scope(r)
		if err := a.may(who, scope.Topic); err != nil {
			fail(w, err)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, formBytes)
		if err := r.ParseForm(); err != nil {
			fail(w, badRequest("the form cannot be read: %v", err))
			return
		}
		allowed, stop := a.whileAllowed(r.Context(), who, scope)
		defer stop()
		free, err := a.slots.Queue(allowed, request.HolderOf(r))
		if err != nil {
			fail(w, busy(err))
			return
		}
		defer free()
		ctx, cancel := context.WithTimeout(allowed, maxTime)
		defer cancel()
		answer, err := f(r.WithContext(ctx), scope)
		if lost := request.Lost(ctx); err != nil && lost != nil {
			err = &refusal{http.StatusUnauthorized, lost.Error()}
		}
		if own := (*refusal)(nil); err != nil && errors.As(context.Cause(allowed), &own) { // it may not any more
			err = own
		}
		if err != nil {
			fail(w, named(r, scope, err))
			return
		}
		write(w, answer)
	}
}

// busy is why a request got no slot: all are taken, or its right ended while it waited.
func busy(err error) error {
	switch {
	case errors.As(err, new(*request.BusyError)):
		return &refusal{http.StatusServiceUnavailable, err.Error() + "; ask again in a second"}
	case errors.Is(err, access.ErrUnauthenticated):
		return &refusal{http.StatusUnauthorized, err.Error()}
	}
	return err
}

// whileAllowed returns a context that has the row limit of who asks, and ends when the right changes.
func (a *API) whileAllowed(ctx context.Context, who *access.Principal, scope logql.Scope) (_ context.Context, stop func()) {
	ctx, stop = request.WhileAllowed(ctx, func(now *access.Principal) error {
		if now.Where != who.Where || scope.Topic == "" && !slices.EqualFunc(now.Grants, who.Grants, same) {
			return access.ErrUnauthenticated // it asks again, within what it may now
		}
		return a.may(now, scope.Topic)
	})
	return filter.WithLimit(ctx, who.Where), stop
}

func same(a, b access.Grant) bool { return a.Role == b.Role && slices.Equal(a.Topics, b.Topics) }

// scope is what a request may read.
func (a *API) scope(r *http.Request) logql.Scope {
	s := logql.Scope{Topic: r.PathValue("topic")}
	if tenant := r.Header.Get(HeaderTenant); s.Topic == "" && schemas.ValidateTopicName(tenant) == nil {
		s.Topic = tenant
	}
	if !a.cfg.Anyone {
		who := access.From(r.Context())
		s.May = func(topic string) bool { return who.May(access.Read, topic) == nil }
	}
	return s
}

// may returns why who asks may not read a topic, or any where none is named.
func (a *API) may(who *access.Principal, topic string) error {
	if a.cfg.Anyone {
		return nil
	}
	err := who.MaySome(access.Read)
	if topic != "" {
		err = who.May(access.Read, topic)
	}
	err = who.Refused(err)
	switch {
	case err == nil:
		return nil
	case who.Name == "":
		return &refusal{http.StatusUnauthorized, err.Error()}
	}
	return &refusal{http.StatusForbidden, err.Error()}
}

// refused turns an error of the parts below into a status and a text.
func refused(err error) *refusal {
	var own *refusal
	var query *logql.Error
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &query):
		return &refusal{http.StatusBadRequest, err.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return &refusal{http.StatusGatewayTimeout, fmt.Sprintf("the query took longer than %s: narrow its range, or select by labels first", maxTime)}
	case errors.Is(err, budget.ErrLarge):
		return &refusal{http.StatusBadRequest, err.Error()}
	case errors.Is(err, context.Canceled):
		return &refusal{http.StatusServiceUnavailable, "the query was cut off; ask again"}
	case errors.Is(err, budget.ErrFull):
		return &refusal{http.StatusServiceUnavailable, err.Error()}
	case errors.Is(err, filter.ErrLimit):
		return &refusal{http.StatusForbidden, err.Error()}
	case errors.Is(err, schemas.ErrUnknownTopic):
		return &refusal{http.StatusNotFound, err.Error() + ": declare it with `almanac topics apply NAME`, or correct its name"}
	case errors.Is(err, schemas.ErrRequest), errors.Is(err, schemas.ErrTopicName):
		return &refusal{http.StatusBadRequest, err.Error()}
	}
	return &refusal{http.StatusServiceUnavailable, err.Error() + ": send the request again; /readyz says what is wrong"}
}

// named says that the header named the topic, where there is no such topic.
func named(r *http.Request, scope logql.Scope, err error) error {
	if r.PathValue("topic") != "" || scope.Topic == "" || !errors.Is(err, schemas.ErrUnknownTopic) {
		return err
	}
	return &refusal{http.StatusNotFound, fmt.Sprintf("%v: the header %s names it. Declare it with `almanac topics apply NAME`, or leave the header out to read all topics that you may", err, HeaderTenant)}
}

func fail(w http.ResponseWriter, err error) {
	e := refused(err)
	if e.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(cmp.Or(e.status, http.StatusInternalServerError))
	_, _ = fmt.Fprintln(w, e.text)
}

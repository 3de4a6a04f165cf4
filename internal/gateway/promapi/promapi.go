package promapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/budget"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/query/prometheus"
	"github.com/almanac-events/almanac/schemas"
)

// Bounds of requests.
const (
	// maxQueries are under way for one client at once; for others there are a third more (request.WithOthers).
	maxQueries = 8
	formBytes  = 1 << 20
	// maxSteps bounds the instants of a range, as Prometheus does.
	maxSteps = 11_000
)

// Config of the API.
type Config struct {
	Store *prometheus.Store
	// Alerts are the rules and what fires, of all topics.
	Alerts *alerts.Alerts
	// Topic answers where the path names none.
	Topic string
	// Anyone says that nothing is asked of who reads: for an API that only this process reaches.
	Anyone bool
	// Version of this program, for buildinfo.
	Version string
	// OnLimit hears of each request that is refused because too many are under way; it may be nil.
	OnLimit request.OnLimit
}

// API serves reads.
type API struct {
	cfg   Config
	slots *request.Slots
}

// New prepares the API.
func New(cfg Config) *API {
	return &API{cfg: cfg, slots: request.NewSlots(request.OfPromQL, request.WithOthers(maxQueries), cfg.OnLimit)}
}

// Path begins that of each route, below the topic's where that is in the path.
const Path = "/api/v1/"

// route is a path that takes GET, and POST where post says so. ruling: it is about rules of alerts, so of any kind of
// topic, and of all where the path names none.
type route struct {
	post, ruling bool
	serve        func(*API, *http.Request, string, func(answer) error) error
}

// routes are the paths.
var routes = map[string]route{
	"query":               {post: true, serve: (*API).query},
	"query_range":         {post: true, serve: (*API).queryRange},
	"series":              {post: true, serve: (*API).series},
	"labels":              {post: true, serve: (*API).labels},
	"label/{name}/values": {serve: (*API).values},
	"metadata":            {serve: (*API).metadata},
	"status/buildinfo":    {serve: (*API).buildinfo},
	"rules":               {ruling: true, serve: (*API).rules},
	"alerts":              {ruling: true, serve: (*API).alerts},
}

// Patterns are all routes, as http.ServeMux takes them.
func Patterns() (all []string) {
	for name, route := range routes {
		at := []string{Path, "/t/{topic}" + Path}
		if route.ruling { // where Grafana's source of type Loki asks for them
			at = append(at, "/prometheus"+Path, "/t/{topic}/prometheus"+Path)
		}
		for _, below := range at {
			all = append(all, "GET "+below+name)
			if route.post {
				all = append(all, "POST "+below+name)
			}
		}
	}
	slices.Sort(all)
	return all
}

// Add adds the routes.
func (a *API) Add(mux *http.ServeMux) {
	for _, pattern := range Patterns() {
		_, name, _ := strings.Cut(pattern, Path)
		mux.HandleFunc(pattern, a.handle(routes[name]))
	}
}

// answer is what a request is answered with. result, when not nil, is the data.
type answer struct {
	data            any
	result          *promql.Result
	warnings, infos []string
}

// refusal is an error in Prometheus's words.
type refusal struct {
	status int
	kind   string
	text   string
}

func (e *refusal) Error() string { return e.text }

func badData(format string, args ...any) error {
	return &refusal{http.StatusBadRequest, "bad_data", fmt.Sprintf(format, args...)}
}

// handle reads the form, bounds the request and writes its answer. A route's serve answers by calling reply at most once, or
// returns why not.
func (a *API) handle(to route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		topic := r.PathValue("topic")
		if !to.ruling {
			topic = cmp.Or(topic, a.cfg.Topic)
		}
		who := access.From(r.Context())
		if err := a.may(who, topic, to.ruling); err != nil {
			fail(w, err)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, formBytes)
		if err := r.ParseForm(); err != nil {
			fail(w, badData("the form cannot be read: %v", err))
			return
		}
		allowed, stop := request.WhileAllowed(r.Context(), func(now *access.Principal) error {
			if now.Where != who.Where {
				return access.ErrUnauthenticated // it asks again, within the limit of now
			}
			return a.may(now, topic, to.ruling)
		})
		defer stop()
		free, err := a.slots.Queue(allowed, request.HolderOf(r))
		if err != nil {
			fail(w, queued(err))
			return
		}
		defer free()
		r = r.WithContext(filter.WithLimit(allowed, who.Where)) // every read below is of series by filters
		ctx, cancel, err := limited(r)
		if err != nil {
			fail(w, err)
			return
		}
		defer cancel()
		err = to.serve(a, r.WithContext(ctx), topic, func(all answer) error { return write(w, &all) })
		if lost := request.Lost(allowed); err != nil && lost != nil {
			err = queued(lost)
		}
		if own := (*refusal)(nil); err != nil && errors.As(context.Cause(allowed), &own) { // it may not any more
			err = own
		}
		if err != nil {
			fail(w, err)
		}
	}
}

// queued is why a request got no slot: all are taken, or its right ended while it waited.
func queued(err error) error {
	switch {
	case errors.As(err, new(*request.BusyError)):
		return &refusal{http.StatusServiceUnavailable, "unavailable", err.Error() + "; ask again in a second"}
	case errors.Is(err, access.ErrUnauthenticated):
		return &refusal{http.StatusUnauthorized, "unauthorized", err.Error()}
	}
	return err
}

// may returns why who asks may not read a topic; whole: all of its rows, since the count of a rule tells of each.
func (a *API) may(who *access.Principal, topic string, whole bool) error {
	if a.cfg.Anyone {
		return nil
	}
	may := who.May
	if whole {
		may = who.MayAll
	}
	err := who.Refused(may(access.Read, topic))
	switch {
	case err == nil:
		return nil
	case who.Name == "":
		return &refusal{http.StatusUnauthorized, "unauthorized", err.Error()}
	}
	return &refusal{http.StatusForbidden, "forbidden", err.Error()}
}

// limited is the request's context with its own time limit, if it has one, and Prometheus's.
func limited(r *http.Request) (context.Context, context.CancelFunc, error) {
	limit := prometheus.MaxTime
	if text := r.FormValue("timeout"); text != "" {
		d, err := parseDuration(text)
		if err != nil {
			return nil, nil, badParameter("timeout", err)
		}
		limit = min(limit, d)
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	return ctx, cancel, nil
}

// refused turns an error of the parts below into Prometheus's words.
func refused(err error) *refusal {
	var own *refusal
	var parse *prometheus.ParseError
	var timeout promql.ErrQueryTimeout
	var canceled promql.ErrQueryCanceled
	var storage promql.ErrStorage
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &parse):
		return &refusal{http.StatusBadRequest, "bad_data", `invalid parameter "query": ` + err.Error()}
	case errors.As(err, &timeout), errors.Is(err, context.DeadlineExceeded):
		return &refusal{http.StatusServiceUnavailable, "timeout", err.Error()}
	case errors.As(err, &canceled), errors.Is(err, context.Canceled):
		return &refusal{http.StatusServiceUnavailable, "canceled", err.Error()}
	case errors.Is(err, budget.ErrFull):
		return &refusal{http.StatusServiceUnavailable, "unavailable", err.Error()}
	case errors.Is(err, filter.ErrLimit):
		return &refusal{http.StatusForbidden, "forbidden", err.Error()}
	case errors.Is(err, schemas.ErrUnknownTopic):
		return &refusal{http.StatusNotFound, "not_found", err.Error() + ": declare it with `almanac topics apply NAME --kind metric`, or correct its name"}
	case errors.Is(err, schemas.ErrRequest):
		return &refusal{http.StatusUnprocessableEntity, "execution", err.Error()}
	case errors.As(err, &storage):
		return &refusal{http.StatusInternalServerError, "internal", err.Error()}
	}
	return &refusal{http.StatusUnprocessableEntity, "execution", err.Error()}
}

func fail(w http.ResponseWriter, err error) {
	e := refused(err)
	if e.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	head(w, e.status)
	_ = json.NewEncoder(w).Encode(map[string]string{"status": "error", "errorType": e.kind, "error": e.text})
}

func head(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
}

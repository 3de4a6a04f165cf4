package recording

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/almanac-events/almanac/audit"
	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// MaxBytes bounds what is recorded of a request, address and body: with what is beside them
// they fit an event (schemas.MaxEventBytes).
const MaxBytes = 48 << 10

// maxClaimed bounds a claimed name.
const maxClaimed = 256

// LabelClaimed is the attribute with who asks, as the request's header says.
const LabelClaimed = "claimed_actor"

// TypeRead is the type of the events.
const TypeRead = "read"

// Names of attributes.
const (
	labelBody   = "body"
	labelClient = "client" // the address that the connection came from
	// labelDatabase is what a client of ClickHouse sends as headerDatabase.
	labelDatabase  = "database"
	headerDatabase = "X-ClickHouse-Database"
	// lokiPath is where a client of Loki names a topic by headerTenant.
	lokiPath     = "/loki/api/v1/"
	headerTenant = "X-Scope-OrgID"
)

// Config says where reads are recorded. Pool and Topic are required.
type Config struct {
	Pool *pool.Pool
	// Topic is of kind audit.
	Topic string
	// The actor is the name of the token that asks; empty without one.

	// ActorHeader, where set, says who asks. Any program that reaches the listener can set it, so it is recorded
	// as what was claimed, and not as the actor.
	ActorHeader string
}

// Handler has the routes of mux answer, and records each read before. That of who may do nothing at all is refused and not recorded:
// the trail is not for everybody to fill.
func Handler(mux *http.ServeMux, cfg Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, pattern := mux.Handler(r)
		if asks(pattern) && access.From(r.Context()).Any() {
			if err := cfg.record(w, r, pattern); err != nil {
				request.Fail(w, r, err)
				return
			}
		}
		mux.ServeHTTP(w, r)
	})
}

// asks reports whether a route's answer has what topics hold. The API declares it; of the routes beside it, those of
// Prometheus and Loki read, but for the two that take samples and lines.
func asks(pattern string) bool {
	if op := operations.Of(pattern); op != nil {
		return op.Access == operations.Reads || op.Access == operations.ReadsAndWrites
	}
	method, path, ok := strings.Cut(pattern, " ")
	if !ok { // whole trees: an input, and what is not found
		return false
	}
	below := strings.TrimPrefix(path, "/t/{topic}")
	prometheus := strings.HasPrefix(below, "/api/v1/") && !strings.HasSuffix(path, "/write")
	loki := strings.HasPrefix(below, lokiPath) && !strings.HasSuffix(path, "/push")
	return method == http.MethodGet || method == http.MethodPost && (prometheus || loki)
}

// private reports whether what a request carries is not recorded: names of an erasure are in the ledger alone, receivers of alerts have
// secrets, and payloads are larger than a record.
func private(pattern string) bool {
	op := operations.Of(pattern)
	return op != nil && (op.Body != nil && op.Body.Private || op.Body == nil && op.Access == operations.ReadsAndWrites)
}

// record stores that a request came.
func (c *Config) record(w http.ResponseWriter, r *http.Request, pattern string) error {
	body := ""
	if !private(pattern) {
		var err error
		if body, err = takeBody(w, r); err != nil {
			return err
		}
	}
	a := activity(r, pattern, body)
	if claimed := r.Header.Get(c.ActorHeader); c.ActorHeader != "" && claimed != "" {
		if len(claimed) > maxClaimed {
			return request.Refuse(http.StatusBadRequest, "bad_header", fmt.Sprintf("%s has %d bytes, at most %d are recorded", c.ActorHeader, len(claimed), maxClaimed), "send a shorter name")
		}
		a.Labels = append(a.Labels, schemas.String(LabelClaimed, access.Masked(claimed)))
	}
	ev, err := a.Event()
	if err == nil {
		err = c.store(r.Context(), ev)
	}
	if err != nil {
		return request.Refuse(http.StatusServiceUnavailable, "not_recorded", fmt.Sprintf("reads are recorded in topic %s, and this one cannot be: %v", c.Topic, err),
			"audit_reads names a topic of kind audit, declared by `"+kinds.Audit.Declare(c.Topic)+"`; send the request again once it takes events")
	}
	return nil
}

func (c *Config) store(ctx context.Context, ev schemas.Event) error {
	ctx = access.With(ctx, access.Trail)
	req := c.Pool.Begin(pool.InputAudit)
	defer req.End()
	if err := req.Ready(ctx); err != nil {
		return err
	}
	to, err := req.To(ctx, c.Topic)
	if err != nil {
		return err
	}
	if kind := to.Topic().Kind; kind != kinds.Audit {
		return fmt.Errorf("it is of kind %s", kind)
	}
	if err := to.Add(ev); err != nil {
		return err
	}
	_, err = req.Store(ctx)
	return err
}

// takeBody reads the whole body, at most MaxBytes less the address, and puts a copy back for the
// route. ClickHouse takes a part of a statement from the body of a GET too.
func takeBody(w http.ResponseWriter, r *http.Request) (string, error) {
	room := MaxBytes - len(r.URL.RequestURI()) - 2*len(r.URL.Path) // which is in the resource and the scope too
	if room < 0 {
		return "", tooLarge()
	}
	if r.Body == nil || r.Body == http.NoBody {
		return "", nil
	}
	if r.Header.Get("Content-Encoding") != "" || decompresses(r.URL.RawQuery) {
		return "", request.Refuse(http.StatusUnsupportedMediaType, "compressed", "reads are recorded here, and a compressed body cannot be read for that", "send it uncompressed")
	}
	paced := request.Pace(w, r)
	body, err := io.ReadAll(io.LimitReader(paced, int64(room)+1))
	_ = paced.Close()
	// Too slow, too large on the wire, or broken off: Broken says which as a refusal for the client, and err would not.
	if broken := paced.Broken(); broken != nil {
		return "", broken
	}
	if err != nil {
		return "", err
	}
	if len(body) > room {
		return "", tooLarge()
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return string(body), nil
}

func tooLarge() error {
	return request.Refuse(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("reads are recorded here, with at most %d KiB of address and body", MaxBytes>>10), "send a shorter statement")
}

// activity is what is stored of a request.
func activity(r *http.Request, pattern, body string) audit.Activity {
	_, path, _ := strings.Cut(pattern, " ")
	a := audit.Activity{
		Type: TypeRead, Category: kinds.CategoryRead, Request: request.ID(r), Scope: "almanac", Service: "almanac",
		Method: r.Method + " " + path, Resource: access.Masked(r.URL.Path), Message: r.Method + " " + access.Masked(asked(r.URL)),
	}
	if who := access.From(r.Context()); who.Token != nil {
		a.Actor = who.Name
	}
	if rest, ok := strings.CutPrefix(path, "/v1/"); ok {
		a.ResourceType, _, _ = strings.Cut(rest, "/")
	}
	// The route's own pattern has not been matched yet: the topic is read from the path.
	at := strings.Split(path, "/")
	for i, part := range strings.Split(r.URL.Path, "/") {
		if i < len(at) && at[i] == "{topic}" {
			a.Scope = "topics/" + access.Masked(part)
		}
	}
	if tenant := r.Header.Get(headerTenant); strings.HasPrefix(path, lokiPath) && schemas.ValidateTopicName(tenant) == nil { // as package lokiread reads it
		a.Scope = "topics/" + tenant
	}
	if client, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		a.Labels = append(a.Labels, schemas.String(labelClient, client))
	}
	if database := r.Header.Get(headerDatabase); database != "" { // as the parameter, which is in the address
		a.Labels = append(a.Labels, schemas.String(labelDatabase, access.Masked(database)))
	}
	if body != "" {
		a.Labels = append(a.Labels, schemas.String(labelBody, access.Masked(body)))
	}
	return a
}

// asked is path and parameters as they were sent, without a password. Parameters are not parsed:
// what cannot be would be left out, and ClickHouse reads some of it.
func asked(u *url.URL) string {
	path := u.EscapedPath()
	if u.RawQuery == "" {
		return path
	}
	parts := strings.Split(u.RawQuery, "&")
	for i, part := range parts {
		for at, key := range keysOf(part) {
			if strings.EqualFold(key, "password") {
				parts[i] = part[:at] + "password=xxxxx"
				break
			}
		}
	}
	return path + "?" + strings.Join(parts, "&")
}

// decompresses reports whether any parameter, in whatever case, says that the body is compressed.
func decompresses(rawQuery string) bool {
	for part := range strings.SplitSeq(rawQuery, "&") {
		for at, key := range keysOf(part) {
			_, v, _ := strings.Cut(part[at:], "=")
			if strings.EqualFold(key, "decompress") && v != "" && v != "0" {
				return true
			}
		}
	}
	return false
}

// keysOf yields the names in a part of a query that has no &, and where each begins. Some servers
// take a semicolon for an &.
func keysOf(part string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		at := 0
		for piece := range strings.SplitSeq(part, ";") {
			key, _, _ := strings.Cut(piece, "=")
			if plain, err := url.QueryUnescape(key); err == nil {
				key = plain
			}
			if !yield(at, strings.TrimSpace(key)) {
				return
			}
			at += len(piece) + 1
		}
	}
}

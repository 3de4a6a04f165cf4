package lines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"time"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/intake"
	"github.com/almanac-events/almanac/schemas"
)

// Bounds of a request.
const (
	// MaxEvents bounds the events of one request.
	MaxEvents = 100_000
	// maxShown bounds the refused lines that an answer names.
	maxShown = 100
	// maxRefused bounds the refused lines of a request: who sends that many sends
	// something else.
	maxRefused = 100_000
	// weight is how many bytes a byte of the body holds while it is decoded and taken.
	weight = 2
	// storedWait bounds ack=stored.
	storedWait = 10 * time.Second
	// usualLine is how many bytes a line has at least, as a rule.
	usualLine = 64
	// matchWait bounds the reading of a body by regular expressions: the connection ends at two minutes (gateway.answerWait).
	matchWait = time.Minute
	// maxKey bounds an Idempotency-Key.
	maxKey = 256
)

// Config of the input.
type Config struct {
	Pool *pool.Pool
	// Stored waits until SQL has what topics were given, until ctx ends at most.
	// Without it ack=stored is refused.
	Stored func(ctx context.Context, topics []string) error
	// Now is the clock of times without a year.
	Now func() time.Time
	// OnLimit hears of each request that is refused because too many bodies are read by expressions; it may be nil.
	OnLimit request.OnLimit
}

// Input is the handler of POST /v1/topics/{topic}/events.
type Input struct {
	cfg  Config
	keys *keys
	// matching are the bodies that are read by regular expressions.
	matching  *request.Slots
	matchWait time.Duration // matchWait, but in tests
}

// New prepares the input.
func New(cfg Config) *Input {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Input{
		cfg: cfg, keys: newKeys(time.Now), matchWait: matchWait,
		matching: request.NewSlots(request.OfExpressions, matchers(runtime.GOMAXPROCS(0)), cfg.OnLimit),
	}
}

// matchers is how many bodies are read by regular expressions at once, each of which keeps a processor busy: half of the processors do
// other work. There are two at least, so that no client has all of them.
func matchers(processors int) int { return max(2, processors/2) }

// Answer is what became of a request.
type Answer struct {
	Accepted int       `json:"accepted"`
	Refused  []Refused `json:"refused"`
	Total    int       `json:"refused_total"`
	// NoTime counts the accepted that said no time and got now; TimeFields are keys of them that may have been meant.
	NoTime     int      `json:"no_time,omitempty"`
	TimeFields []string `json:"time_fields,omitempty"`
	Repeated   bool     `json:"repeated,omitempty"`
	Stored     *bool    `json:"stored,omitempty"`
	// Erased names erasures that took events of the request after it was stored first.
	Erased []string `json:"erased_since,omitempty"`

	Error *request.Error `json:"error,omitempty"`
}

// Refused is a line that was not taken.
type Refused struct {
	Line int `json:"line"`
	// Element is its number in an array.
	Element int    `json:"element,omitempty"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// place is where a refused record is.
func (r *Refused) place() string {
	if r.Element > 0 {
		return fmt.Sprintf("element %d, in line %d", r.Element, r.Line)
	}
	return fmt.Sprintf("line %d", r.Line)
}

// ServeHTTP implements http.Handler.
func (in *Input) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := in.serve(w, r); err != nil {
		request.Fail(w, r, err)
	}
}

func (in *Input) serve(w http.ResponseWriter, r *http.Request) error {
	o, err := readOptions(r.URL.Query(), in.cfg.Now())
	if err != nil {
		return err
	}
	if o.ack == ackStored && in.cfg.Stored == nil {
		return bad("ack=stored needs a ClickHouse, and this gateway runs without one", "use ack=stream")
	}
	req := in.cfg.Pool.Begin(pool.InputLines)
	defer req.End()
	if err := key(req, access.From(r.Context()).Name, r.Header); err != nil {
		return err
	}
	if err := req.Ready(r.Context()); err != nil {
		return err
	}
	to, err := req.To(r.Context(), r.PathValue("topic"))
	if err != nil {
		return err
	}
	body, err := request.Body(w, r, req, weight)
	if err != nil {
		return err
	}
	var mine *sent // what is under the request's key
	first, kept := false, false
	if k := r.Header.Get("Idempotency-Key"); k != "" {
		if mine, first, err = in.keys.claim(access.From(r.Context()).Name, r.PathValue("topic"), k, in.keys.formOf(r.URL.Query(), r.Header.Get("Content-Type"), body)); err != nil {
			return err
		}
		defer func() {
			if first && !kept {
				in.keys.free(mine)
			}
		}()
	}
	a, err := in.decode(r, req, body, &o, to)
	if err != nil {
		return err
	}
	if mine != nil {
		if was := in.keys.again(mine, a); was != nil {
			request.JSON(w, http.StatusOK, was)
			return nil
		}
	}
	switch {
	case a.Total > 0 && (req.Len() == 0 || o.refuseAll):
		a.Accepted, a.NoTime, a.TimeFields = 0, 0, nil
		hint := "correct them, then send the request again"
		if req.Len() > 0 {
			hint = "correct them; without refuse=all the others are taken"
		}
		a.Error = request.ErrorOf(r, request.Refuse(http.StatusBadRequest, "refused",
			fmt.Sprintf("refused: %d, and nothing was taken; the first is %s: %s", a.Total, a.Refused[0].place(), a.Refused[0].Message),
			hint))
		request.JSON(w, http.StatusBadRequest, a)
		return nil
	case o.ack == ackNone:
		err := req.Submit(r.Context())
		if kept = first && (err == nil || errors.Is(err, pool.ErrOutcomeUnknown)); err != nil {
			return err
		}
		in.keys.answered(mine, a)
		request.JSON(w, http.StatusAccepted, a)
		return nil
	}
	a.Repeated, err = req.Store(r.Context())
	if kept = first && (err == nil || errors.Is(err, pool.ErrOutcomeUnknown)); err != nil {
		return err
	}
	in.keys.answered(mine, a)
	a.Erased = req.Erased()
	status := http.StatusOK
	if o.ack == ackStored {
		ok := in.stored(r.Context(), req.Topics())
		if a.Stored = &ok; !ok {
			status = http.StatusAccepted
		}
	}
	request.JSON(w, status, a)
	return nil
}

// stored says whether SQL has the events in time.
func (in *Input) stored(ctx context.Context, topics []string) bool {
	ctx, cancel := context.WithTimeout(ctx, storedWait)
	defer cancel()
	return in.cfg.Stored(ctx, topics) == nil
}

// slowExpressions refuses a body that takes its expressions too long. Nothing of it was taken.
func slowExpressions(most time.Duration) error {
	return request.Refuse(http.StatusRequestEntityTooLarge, "slow_expressions", fmt.Sprintf("the body was read by regular expressions for %s and is not done; nothing was taken", most),
		"send fewer or shorter lines at once, or expressions that begin with ^ and repeat less")
}

// decode is the function decode. A body that is read by regular expressions waits for its turn, and has its bound in time.
func (in *Input) decode(r *http.Request, req *pool.Request, body []byte, o *options, to *pool.Target) (*Answer, error) {
	if o.Multiline != nil || o.UserRegex != nil || o.Extract != nil {
		free, err := in.matching.Wait(r.Context(), request.HolderOf(r), pool.SpaceWait)
		if err != nil {
			return nil, req.Busy(r.Context(), err)
		}
		defer free()
		ctx, cancel := context.WithTimeoutCause(r.Context(), in.matchWait, slowExpressions(in.matchWait))
		defer cancel()
		o.Stop = func() error { return context.Cause(ctx) }
	}
	return decode(body, r.Header.Get("Content-Type"), o, to)
}

// key makes the request idempotent where the client asks for it. The key is the writer's own: with that of another it would say
// whether that one sent the same.
func key(req *pool.Request, writer string, h http.Header) error {
	k := h.Get("Idempotency-Key")
	if len(k) > maxKey {
		return bad(fmt.Sprintf("the Idempotency-Key has %d bytes, the limit is %d", len(k), maxKey), "use a UUID")
	}
	if k != "" {
		req.Key("lines " + writer + " " + k)
	}
	return nil
}

// decode reads a body into a target.
func decode(body []byte, contentType string, o *options, to *pool.Target) (*Answer, error) {
	o.Topic = to.Topic()
	if o.Format = formatOf(o.Format, contentType, body); o.Format == "" {
		return nil, request.Refuse(http.StatusUnsupportedMediaType, "unsupported_type", fmt.Sprintf("Content-Type %q is none that events are in", contentType),
			"send application/x-ndjson, application/json, text/plain, text/csv or application/logfmt, or name the format: ?format=text")
	}
	check := o.Options
	if check.Format == formatJSON {
		check.Format = intake.FormatNDJSON
	}
	if err := check.Validate(); err != nil {
		return nil, bad(err.Error(), "")
	}
	to.Expect(min(bytes.Count(body, []byte{'\n'})+1, len(body)/usualLine+1, MaxEvents))
	a := &Answer{Refused: []Refused{}}
	refuse := func(line, element int, err error) {
		if a.Total++; len(a.Refused) < maxShown {
			a.Refused = append(a.Refused, Refused{line, element, reason(err), err.Error()})
		}
	}
	source := func(rec *Record) []byte {
		if check.Format == intake.FormatNDJSON {
			return rec.Raw // what becomes of an object depends on the fields of the topic
		}
		return nil
	}
	err := Decode(body, o.Options, func(rec *Record) error {
		err := rec.Err
		if err == nil {
			err = to.AddOf(rec.Event, source(rec))
		} else {
			to.Refuse(err)
		}
		if err == nil {
			a.Accepted++
			if rec.Event.Time.IsZero() {
				a.NoTime++
				if name := rec.OtherTime; name != "" && !slices.Contains(a.TimeFields, name) {
					a.TimeFields = append(a.TimeFields, name)
				}
			}
		} else {
			refuse(rec.Line, rec.Element, err)
		}
		if a.Accepted > MaxEvents || a.Total > maxRefused {
			return tooMany()
		}
		return nil
	})
	var own *request.Error
	switch {
	case errors.As(err, &own), o.Stop != nil && o.Stop() != nil:
		return nil, err
	case err != nil: // what was read before it stays good
		refuse(0, 0, err)
		to.Refuse(err)
	}
	return a, nil
}

// reason is the word for why a line is refused.
func reason(err error) string {
	for _, r := range []struct {
		err  error
		word string
	}{
		{pool.ErrKeyTime, "no-time"}, {intake.ErrNoTime, "no-time"}, {intake.ErrTooLong, "record-too-long"},
		{intake.ErrSyntax, "malformed"}, {intake.ErrField, "bad-field"}, {intake.ErrHeader, "bad-csv-header"}, {errBody, "not-json"},
	} {
		if errors.Is(err, r.err) {
			return r.word
		}
	}
	if word := schemas.Reason(err); word != "" {
		return word
	}
	return "refused"
}
